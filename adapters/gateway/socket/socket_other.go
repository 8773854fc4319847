//go:build !linux

// Package socket asks the kernel about connections to targets without reading from
// them.
package socket

import (
	"errors"
	"net"
	"os"
	"time"
)

// quietFor is how long Quiet waits for bytes or the end of a connection.
const quietFor = time.Millisecond

// Quiet reports whether a connection between two requests is open and has nothing to
// read. A connection that the target closed, or on which it sent bytes that were not
// requested, is not. It blocks for at most quietFor.
func Quiet(tcp *net.TCPConn) bool {
	if tcp.SetReadDeadline(time.Now().Add(quietFor)) != nil {
		return false
	}
	var b [1]byte
	_, err := tcp.Read(b[:])
	return errors.Is(err, os.ErrDeadlineExceeded) && tcp.SetReadDeadline(time.Time{}) == nil
}

// Pending returns 0: outside Linux the kernel is not asked for what was not read.
func Pending(*net.TCPConn) int64 { return 0 }
