package http1

import (
	"errors"
	"io"
)

// BodyKind is how the end of a body is found (RFC 9112 section 6.3).
type BodyKind uint8

// The kinds of framing.
const (
	NoBody     BodyKind = iota // the message ends with its head
	Sized                      // Content-Length
	Chunked                    // chunked, rewritten as chunked
	Unchunked                  // chunked, written to an HTTP/1.0 client without chunks
	UntilClose                 // a response that ends with its connection
)

// Body is the framing of one message. Length is valid if Kind is Sized.
type Body struct {
	Kind   BodyKind
	Length int64
}

func framing(chunked bool, length int64) Body {
	switch {
	case chunked:
		return Body{Kind: Chunked}
	case length >= 0:
		return Body{Sized, length}
	}
	return Body{Kind: NoBody}
}

// Meter grants the bytes that a copy moves. A nil Meter grants all.
type Meter interface {
	// Take requests to move n bytes, n > 0, and returns how many may move now: 1 to n,
	// or 0 and the error that ends the copy. It may block.
	Take(n int) (int, error)
	// Return follows Take for bytes that are written: all of them were written except
	// the last n, which are returned because writing failed.
	Return(n int)
}

// TakeAll takes n bytes for a unit that moves entirely or not at all, such as a head.
// On an error nothing stays taken.
func TakeAll(m Meter, n int) error {
	if m == nil {
		return nil
	}
	for taken := 0; taken < n; {
		k, err := takeBytes(m, n-taken)
		if err != nil {
			if taken > 0 {
				m.Return(taken)
			}
			return err
		}
		taken += k
	}
	return nil
}

var errNoGrant = errors.New("http1: a meter granted nothing and gave no reason")

func takeBytes(m Meter, n int) (int, error) {
	k, err := m.Take(n)
	if err != nil {
		return 0, err
	}
	if k <= 0 || k > n {
		return 0, errNoGrant
	}
	return k, nil
}

// Step is where a copy stopped.
type Step uint8

// The steps of a copy.
const (
	Reading  Step = iota + 1 // the source failed, ended early or broke its framing (*Error)
	Writing                  // the destination failed
	Metering                 // the meter granted no more
)

// CopyError is the step at which a copy stopped and its error. Err is
// io.ErrUnexpectedEOF if the source ended within its body.
type CopyError struct {
	Step Step
	Err  error
}

// Error returns the step and its error.
func (e *CopyError) Error() string {
	step := [...]string{"?", "read", "write", "meter"}[e.Step]
	return "http1: " + step + ": " + e.Err.Error()
}

// Unwrap returns the error of the step.
func (e *CopyError) Unwrap() error { return e.Err }

// Moved counts a copy: the bytes of the body taken from the source, and the bytes
// written to the destination with the head, both as they were on the wire.
type Moved struct {
	In, Out int64
}

// CopyRequest writes head and moves the body that follows it on src. The meter
// counts bytes of the body as they are taken from src, chunk framing included;
// the head is for TakeAll(m, h.Metered()). Chunks are parsed strictly (RFC 9112
// section 7.1), at most 256 bytes of size and extensions each and 8 KiB of
// trailers, and rewritten without extensions and trailers, which a proxy may
// discard (RFC 9110 section 6.5.1). Errors are *CopyError.
func CopyRequest(dst io.Writer, head []byte, src *Reader, body Body, m Meter) (Moved, error) {
	c := copier{dst: dst, src: src, up: m}
	return c.run(head, body)
}

// CopyResponse writes head and moves the body that follows it on src. The meter
// counts all bytes as they are written to dst, the head's too. Chunks are treated
// as CopyRequest does, except that spaces may follow a size. If the source breaks
// its framing before anything was written, Moved.Out is 0 and the caller can still
// send an answer of its own. Errors are *CopyError.
func CopyResponse(dst io.Writer, head []byte, src *Reader, body Body, m Meter) (Moved, error) {
	c := copier{dst: dst, src: src, down: m, lenient: true}
	return c.run(head, body)
}
