package secure

import (
	"io"

	"golang.org/x/sys/unix"
)

// ReadNow reads what TLS can decrypt without waiting. It returns unix.EAGAIN if that is nothing: then less than a
// record has arrived. fd is the descriptor of SyscallConn, whose Read calls it. An unfinished record stays with the
// Conn, whose reader needs no buffer until the rest arrives.
func (c *Conn) ReadNow(fd uintptr, p []byte) (int, error) {
	c.raw.now = int(fd) + 1
	n, err := c.Conn.Read(p)
	c.raw.now = 0
	if err == errNothing {
		err = unix.EAGAIN
	}
	return n, err
}

// nothing is the error of a read that would wait. Like after a deadline, TLS can go on behind it.
type nothing struct{}

func (nothing) Error() string   { return "secure: nothing has arrived" }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }

var errNothing error = nothing{}

func readNow(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Read(fd, p)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return 0, errNothing
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}
