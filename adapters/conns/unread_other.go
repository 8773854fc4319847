//go:build !linux

package conns

import "syscall"

// unread returns false: outside Linux the kernel is not asked.
func unread(syscall.Conn) bool { return false }
