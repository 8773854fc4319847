package dial

import (
	"context"
	"syscall"

	"golang.org/x/sys/unix"
)

// lateBind leaves the choice of the local port to connect(2), when the target is
// known: one exit can then have 28,000 connections to each target instead of to all
// targets together.
func lateBind(_ context.Context, _, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
}
