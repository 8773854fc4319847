package h2

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// Stream is one stream as a connection of HTTP/1.1. One goroutine may read while another one writes. SetDeadline and
// Close may be called at any time, also after the end.
type Stream struct {
	conn   net.Conn
	ctx    context.Context
	in     request
	out    response
	closed chan struct{} // by Close

	mu      sync.Mutex
	control *http.ResponseController
	writing bool
	cut     bool // the deadline is over
	reset   bool // by Reset
	ended   bool // by CloseWrite
	shut    bool // closed is closed
	over    bool // the stream is no more used
}

func newStream(w http.ResponseWriter, r *http.Request, conn net.Conn) *Stream {
	s := &Stream{conn: conn, ctx: r.Context(), closed: make(chan struct{}), control: http.NewResponseController(w)}
	s.in.init(r)
	s.out = response{w: w, control: s.control, tunnel: r.Method == http.MethodConnect,
		bodiless: r.Method == http.MethodHead}
	return s
}

// Context is done when the client has reset the stream or left.
func (s *Stream) Context() context.Context { return s.ctx }

// Read reads the request, and on a tunnel what follows it.
func (s *Stream) Read(p []byte) (int, error) {
	n, err := s.in.read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ended { // nothing more is waited for
			err = io.EOF
		}
	}
	return n, err
}

// Write takes the response, and on a tunnel what follows it. It returns when that has been sent.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	if s.cut || s.ended || s.over {
		s.mu.Unlock()
		return 0, os.ErrDeadlineExceeded
	}
	s.writing = true
	s.mu.Unlock()
	n, err := s.out.write(p)
	s.mu.Lock()
	s.writing = false
	s.mu.Unlock()
	return n, err
}

// CloseWrite ends the response. The engine can send no end while it goes on to receive: what the client sends later is
// not read.
func (s *Stream) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if !s.over {
		_ = s.control.SetReadDeadline(time.Unix(1, 0))
	}
	return nil
}

// Close ends the stream. It is reset if the response is incomplete, or if it was interrupted.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shut {
		s.shut = true
		close(s.closed)
	}
	return nil
}

// Wait waits until the stream is closed.
func (s *Stream) Wait() { <-s.closed }

// Reset has the stream end with a reset, whatever was sent of its response.
func (s *Stream) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset = true
}

// finish ends all use of the stream, and reports whether it is to be reset.
func (s *Stream) finish() (reset bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.cut || s.reset || !s.out.complete()
}

// SetDeadline sets the time at which reading and writing fail. After a time in the past reading goes on no more.
func (s *Stream) SetDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return net.ErrClosed
	}
	s.cut = !t.IsZero() && t.Before(time.Now())
	if s.cut && s.writing {
		_ = s.control.SetWriteDeadline(t)
	}
	return s.control.SetReadDeadline(t)
}

// SetReadDeadline is SetDeadline.
func (s *Stream) SetReadDeadline(t time.Time) error { return s.SetDeadline(t) }

// SetWriteDeadline is SetDeadline.
func (s *Stream) SetWriteDeadline(t time.Time) error { return s.SetDeadline(t) }

// LocalAddr returns the address of the connection.
func (s *Stream) LocalAddr() net.Addr { return s.conn.LocalAddr() }

// RemoteAddr returns the address of the connection's peer.
func (s *Stream) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }
