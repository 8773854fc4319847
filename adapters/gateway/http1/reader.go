package http1

import (
	"bytes"
	"io"
	"sync"
)

// MaxHead is how many bytes a request or response head may have, the empty line
// that ends it included.
const MaxHead = 32 << 10

// Buffers come in three sizes. A connection that waits holds the smallest; the
// larger ones serve long heads and bodies that keep a whole buffer full. The
// largest bounds a head: one that does not fit is too long.
const (
	smallBuffer  = 4 << 10
	mediumBuffer = 8 << 10
	largeBuffer  = MaxHead
)

var (
	smallBuffers  = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	mediumBuffers = sync.Pool{New: func() any { return new([mediumBuffer]byte) }}
	largeBuffers  = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
)

// getBuffer returns a pooled buffer of the least size that holds n bytes, or
// the largest there is.
func getBuffer(n int) []byte {
	switch {
	case n <= smallBuffer:
		return smallBuffers.Get().(*[smallBuffer]byte)[:]
	case n <= mediumBuffer:
		return mediumBuffers.Get().(*[mediumBuffer]byte)[:]
	}
	return largeBuffers.Get().(*[largeBuffer]byte)[:]
}

func putBuffer(b []byte) {
	switch cap(b) {
	case smallBuffer:
		smallBuffers.Put((*[smallBuffer]byte)(b[:smallBuffer]))
	case mediumBuffer:
		mediumBuffers.Put((*[mediumBuffer]byte)(b[:mediumBuffer]))
	case largeBuffer:
		largeBuffers.Put((*[largeBuffer]byte)(b[:largeBuffer]))
	}
}

// Reader buffers one connection's incoming bytes. It holds no memory until the
// first read, 4 KiB while it waits for a head, and up to 32 KiB for a long head
// or a busy body. It is not safe for concurrent use.
type Reader struct {
	src  io.Reader
	buf  []byte // pooled; nil while nothing is held
	r, w int    // buf[r:w] is read but not yet consumed
	full bool   // the last read filled the buffer: a larger one saves calls
	err  error  // came together with bytes; returned by the next fill
}

// NewReader returns a Reader of src.
func NewReader(src io.Reader) *Reader { return &Reader{src: src} }

// Reset makes r read src, forgetting what it held.
func (r *Reader) Reset(src io.Reader) {
	r.Free()
	r.src, r.err = src, nil
}

// Switch makes r read src behind what it holds already.
func (r *Reader) Switch(src io.Reader) { r.src = src }

// Free gives the buffer back; unread bytes are lost. The Reader stays usable, so
// this is also how an idle pooled connection is parked. Heads that were read
// from r are invalid afterwards.
func (r *Reader) Free() {
	if r.buf != nil {
		putBuffer(r.buf)
	}
	r.buf, r.r, r.w, r.full = nil, 0, 0, false
}

// Buffered returns the bytes that were read from the connection and not yet
// consumed: pipelined requests, or what belongs to a tunnel already. The slice is
// valid until the next call of a method or function that reads from r.
func (r *Reader) Buffered() []byte { return r.buf[r.r:r.w] }

// Discard consumes the first n buffered bytes; n beyond them is an error of the
// caller and panics.
func (r *Reader) Discard(n int) {
	if n < 0 || n > r.w-r.r {
		panic("http1: Discard beyond the buffer")
	}
	r.r += n
}

// Peek waits until n bytes are buffered and returns them unconsumed; n is at
// most 32 KiB. When the connection ends first it returns what there is and
// io.EOF or the read's error.
func (r *Reader) Peek(n int) ([]byte, error) {
	r.shrink()
	for r.w-r.r < n {
		if err := r.fill(); err != nil {
			return r.Buffered(), err
		}
	}
	return r.buf[r.r : r.r+n], nil
}

// Read gives the buffered bytes first, then reads the connection directly.
func (r *Reader) Read(p []byte) (int, error) {
	if r.r == r.w {
		if err := r.err; err != nil {
			r.err = nil
			return 0, err
		}
		return r.src.Read(p)
	}
	n := copy(p, r.buf[r.r:r.w])
	r.r += n
	return n, nil
}

// fill reads at least one more byte into the buffer. It returns io.ErrShortBuffer
// when 32 KiB are held already.
func (r *Reader) fill() error {
	if err := r.err; err != nil {
		r.err = nil
		return err
	}
	if err := r.makeRoom(); err != nil {
		return err
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.w:])
		r.w += n
		r.full = r.w == len(r.buf)
		if n > 0 {
			r.err = err
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

func (r *Reader) makeRoom() error {
	if r.r == r.w {
		r.r, r.w = 0, 0
		if r.full && len(r.buf) < largeBuffer {
			r.resize(len(r.buf) + 1)
		}
	}
	switch {
	case r.buf == nil:
		r.buf = getBuffer(smallBuffer)
	case r.w < len(r.buf):
	case r.r > 0:
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
	case len(r.buf) < largeBuffer:
		r.resize(len(r.buf) + 1)
	default:
		return io.ErrShortBuffer
	}
	return nil
}

// resize moves what is buffered into a buffer of at least n bytes.
func (r *Reader) resize(n int) {
	b := getBuffer(n)
	r.w = copy(b, r.buf[r.r:r.w])
	r.r = 0
	putBuffer(r.buf)
	r.buf, r.full = b, false
}

// shrink makes a kept connection wait with the smallest buffer.
func (r *Reader) shrink() {
	if r.r == r.w && len(r.buf) > smallBuffer {
		r.Free()
	}
}

// head consumes and returns one head of at most limit bytes (MaxHead or less),
// from its first byte to the empty line that ends it. A line that ends in a bare
// LF is refused at once if strict. io.EOF means that the connection ended between
// messages, io.ErrUnexpectedEOF within.
func (r *Reader) head(strict bool, limit int) ([]byte, error) {
	r.shrink()
	line, from := 0, 0 // offsets of the current line and of what is not searched yet
	for {
		b := r.Buffered()
		for {
			i := bytes.IndexByte(b[from:], '\n')
			if i < 0 {
				break
			}
			end := from + i
			cr := end > line && b[end-1] == '\r'
			if strict && !cr {
				return nil, errLineEnd
			}
			if end == line || cr && end == line+1 {
				if end >= limit {
					return nil, errHeadSize
				}
				return r.takeHead(end + 1), nil
			}
			line, from = end+1, end+1
		}
		if from = len(b); from >= limit {
			return nil, errHeadSize
		}
		if err := r.fill(); err != nil {
			return nil, cutShort(err, from > 0)
		}
	}
}

// takeHead consumes n bytes. They stay where they are until the next fill.
func (r *Reader) takeHead(n int) []byte {
	b := r.buf[r.r : r.r+n : r.r+n]
	r.r += n
	return b
}

// cutShort returns err, or io.ErrUnexpectedEOF for an end in the middle of something.
func cutShort(err error, within bool) error {
	if err == io.EOF && within {
		return io.ErrUnexpectedEOF
	}
	return err
}
