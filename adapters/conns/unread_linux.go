package conns

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unread reports whether the kernel holds bytes of a socket that were not read.
func unread(c syscall.Conn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ) })
	return n > 0
}
