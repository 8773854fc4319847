package http1

import (
	"bytes"
	"strconv"
)

// The bounds of chunked coding. Its receiver pays for framing with time, so a
// sender may not send much more of it than of data (CVE-2023-39326).
const (
	maxChunkLine     = 256 // size, extensions and CRLF
	maxChunkDigits   = 15  // fits an int64
	maxChunkOverhead = 16 << 10
	maxTrailers      = 8 << 10
)

// chunked moves a chunked body (RFC 9112 section 7.1), as chunks of our own if
// framed, else as mere data. Each stretch of data that is at hand becomes one
// chunk, so nothing waits for a sender to complete its chunk.
func (c *copier) chunked(framed bool) error {
	overhead := int64(0)
	for {
		line, err := c.line(maxChunkLine, errChunkLine)
		if err != nil {
			return err
		}
		size, ok := c.parseChunkLine(line)
		if !ok {
			return c.broken(errChunkSize)
		}
		if overhead = max(0, overhead+int64(len(line))-16-2*size); overhead > maxChunkOverhead {
			return c.broken(errChunkOverhead)
		}
		if size == 0 {
			break
		}
		if err := c.chunk(size, framed); err != nil {
			return err
		}
	}
	if err := c.trailers(); err != nil {
		return err
	}
	if framed {
		return c.gather(lastChunk)
	}
	return nil
}

var lastChunk = []byte("0\r\n\r\n")

// chunk moves the data of one chunk and takes the CRLF after it.
func (c *copier) chunk(size int64, framed bool) error {
	for size > 0 {
		p, err := c.some(size)
		if err != nil {
			return err
		}
		size -= int64(len(p))
		if err := c.data(p, framed); err != nil {
			return err
		}
	}
	for len(c.src.Buffered()) < 2 {
		if b := c.src.Buffered(); len(b) == 1 && b[0] != '\r' {
			return c.broken(errChunkEnd)
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
	if b := c.src.Buffered(); b[0] != '\r' || b[1] != '\n' {
		return c.broken(errChunkEnd)
	}
	return c.taken(2)
}

// data writes a stretch of data, as one chunk if framed.
func (c *copier) data(p []byte, framed bool) error {
	if !framed {
		return c.gather(p)
	}
	const frame = len("7fff\r\n") + len("\r\n")
	for len(p) > 0 {
		if err := c.makeRoom(frame + min(len(p), largeBuffer/8)); err != nil {
			return err
		}
		n := min(len(p), cap(c.out)-len(c.out)-frame)
		c.out = append(strconv.AppendInt(c.out, int64(n), 16), "\r\n"...)
		c.out = append(append(c.out, p[:n]...), "\r\n"...)
		p = p[n:]
	}
	return nil
}

// trailers takes the trailer section and forgets it: a field that arrives after
// its message was checked must not become part of it.
func (c *copier) trailers() error {
	for left, fields := maxTrailers, 0; ; fields++ {
		line, err := c.line(left, errTrailers)
		if err != nil {
			return err
		}
		if left -= len(line); left <= 0 || fields > MaxFields {
			return c.broken(errTrailers)
		}
		if len(line) == 2 {
			return nil
		}
		if _, err := parseField(line, 0, len(line)-2); err != nil {
			return c.broken(err)
		}
	}
}

// line takes a line of at most limit bytes with its CRLF; a longer one is tooLong.
// It is valid until the next read.
func (c *copier) line(limit int, tooLong error) ([]byte, error) {
	from := 0
	for {
		b := c.src.Buffered()
		end := bytes.IndexByte(b[from:], '\n') + from + 1
		if end > from {
			if end > limit {
				return nil, c.broken(tooLong)
			}
			if end < 2 || b[end-2] != '\r' {
				return nil, c.broken(errLineEnd)
			}
			return b[:end], c.taken(end)
		}
		if from = len(b); from >= limit {
			return nil, c.broken(tooLong)
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

// taken meters and consumes n buffered bytes of framing.
func (c *copier) taken(n int) error {
	if err := TakeAll(c.up, n); err != nil {
		return &CopyError{Metering, err}
	}
	c.consume(n)
	return nil
}

func (c *copier) broken(err error) error {
	if c.lenient {
		err = inResponse(err)
	}
	return &CopyError{Reading, err}
}

// parseChunkLine reads the size of a chunk; extensions are checked for control
// characters and ignored (RFC 9112 section 7.1.1). Spaces after a size alone are
// what some old servers pad with.
func (c *copier) parseChunkLine(line []byte) (size int64, ok bool) {
	line = line[:len(line)-2]
	digits := 0
	for digits < len(line) {
		d := hexDigit(line[digits])
		if d < 0 {
			break
		}
		if digits++; digits > maxChunkDigits {
			return 0, false
		}
		size = size<<4 | int64(d)
	}
	rest := line[digits:]
	extension := trim(rest)
	switch {
	case digits == 0 || !all(rest, valueByte):
		return 0, false
	case len(extension) > 0:
		return size, extension[0] == ';'
	}
	return size, len(rest) == 0 || c.lenient
}

func hexDigit(b byte) int {
	switch {
	case '0' <= b && b <= '9':
		return int(b - '0')
	case 'a' <= b && b <= 'f':
		return int(b-'a') + 10
	case 'A' <= b && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}
