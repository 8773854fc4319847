//go:build !linux

package gateway

import (
	"errors"
	"net"
	"os"
	"time"
)

// quietFor is how long quiet waits for bytes or the end of a connection.
const quietFor = time.Millisecond

// quiet reports whether a connection between two requests is open and has nothing to
// read. A connection that the target closed, or on which it sent bytes that were not
// requested, is not. It blocks for at most quietFor.
func quiet(tcp *net.TCPConn) bool {
	if tcp.SetReadDeadline(time.Now().Add(quietFor)) != nil {
		return false
	}
	var b [1]byte
	_, err := tcp.Read(b[:])
	return errors.Is(err, os.ErrDeadlineExceeded) && tcp.SetReadDeadline(time.Time{}) == nil
}
