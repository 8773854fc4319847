package dial

import (
	"context"
	"syscall"

	"golang.org/x/sys/unix"
)

// lateBind leaves the choice of the local port to connect(2), when the target is
// known: one exit, or the host's default address, can then have 28,000 connections to
// each target instead of to all targets together. bind(2) would also search for a port
// that no connection has, closed ones of the last minute included.
func lateBind(_ context.Context, _, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
}
