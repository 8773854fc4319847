package gateway

import (
	"net"

	"golang.org/x/sys/unix"
)

// quiet reports whether a connection between two requests is open and has nothing to
// read. A connection that the target closed, or on which it sent bytes that were not
// requested, is not. It does not block.
func quiet(tcp *net.TCPConn) bool {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		for {
			_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			if err != unix.EINTR {
				open = err == unix.EAGAIN
				return
			}
		}
	})
	return err == nil && open
}
