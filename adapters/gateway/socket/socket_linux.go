// Package socket asks the kernel about connections to targets without reading from
// them.
package socket

import (
	"net"

	"golang.org/x/sys/unix"
)

// Quiet reports whether a connection between two requests is open and has nothing to
// read. A connection that the target closed, or on which it sent bytes that were not
// requested, is not. It does not block.
func Quiet(tcp *net.TCPConn) bool {
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

// Pending returns how many bytes of a connection the kernel holds that were not read.
func Pending(tcp *net.TCPConn) int64 {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ) })
	return int64(max(n, 0))
}
