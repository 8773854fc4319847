package http1

import "io"

// copier moves one message. Small parts are gathered in out, so that a head and the
// beginning of its body, or many small chunks, are one write. Nothing stays gathered
// while the source is waited for.
type copier struct {
	dst      io.Writer
	src      *Reader
	up, down Meter // of bytes taken, of bytes written
	lenient  bool
	out      []byte // pooled; nil while nothing is gathered
	moved    Moved
}

func (c *copier) run(head []byte, body Body) (Moved, error) {
	err := c.message(head, body)
	if err == nil {
		err = c.flush()
	} else if c.moved.Out > 0 {
		// What arrived before the fault is forwarded. A message of which nothing was
		// written is withheld, so that the caller can answer instead.
		_ = c.flush()
	}
	c.drop()
	if atEnd(err) {
		err = &CopyError{Reading, io.ErrUnexpectedEOF}
	}
	return c.moved, err
}

// atEnd reports whether err is the end of the source.
func atEnd(err error) bool {
	e, ok := err.(*CopyError)
	return ok && e.Step == Reading && e.Err == io.EOF
}

func (c *copier) message(head []byte, body Body) error {
	whole := body.Kind == NoBody || body == Body{Sized, 0} // the head is all there is
	var err error
	if whole || len(c.src.Buffered()) == 0 {
		err = c.write(head)
	} else {
		err = c.gather(head)
	}
	if err != nil || whole {
		return err
	}
	switch body.Kind {
	case Sized:
		return c.sized(body.Length)
	case Chunked:
		return c.chunked(true)
	case Unchunked:
		return c.chunked(false)
	}
	return c.untilClose()
}

func (c *copier) sized(left int64) error {
	for left > 0 {
		p, err := c.some(left)
		if err != nil {
			return err
		}
		if err := c.forward(p); err != nil {
			return err
		}
		left -= int64(len(p))
	}
	return nil
}

func (c *copier) untilClose() error {
	const forever = 1<<63 - 1
	for {
		p, err := c.some(forever)
		if atEnd(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.forward(p); err != nil {
			return err
		}
	}
}

// some waits for bytes of the source, takes at most limit of them as far as the
// meter grants, and returns them; they are valid until the next read.
func (c *copier) some(limit int64) ([]byte, error) {
	if len(c.src.Buffered()) == 0 {
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
	p := c.src.Buffered()
	if int64(len(p)) > limit {
		p = p[:limit]
	}
	if c.up != nil {
		n, err := takeBytes(c.up, len(p))
		if err != nil {
			return nil, &CopyError{Metering, err}
		}
		p = p[:n]
	}
	c.consume(len(p))
	return p, nil
}

// fill waits for more bytes. Nothing may stay gathered meanwhile.
func (c *copier) fill() error {
	if err := c.flush(); err != nil {
		return err
	}
	if err := c.src.fill(); err != nil {
		return &CopyError{Reading, err}
	}
	return nil
}

// consume counts bytes that the meter has granted already.
func (c *copier) consume(n int) {
	c.src.Discard(n)
	c.moved.In += int64(n)
}

// forward writes p, together with what is gathered if both fit.
func (c *copier) forward(p []byte) error {
	if len(c.out) == 0 {
		return c.write(p)
	}
	return c.gather(p)
}

// gather appends p to what is gathered, or writes both if they do not fit.
func (c *copier) gather(p []byte) error {
	if len(p) > largeBuffer/2 && len(p) > cap(c.out)-len(c.out) {
		if err := c.flush(); err != nil {
			return err
		}
		return c.write(p)
	}
	if err := c.makeRoom(len(p)); err != nil {
		return err
	}
	c.out = append(c.out, p...)
	return nil
}

// makeRoom makes space for n more gathered bytes, n at most 32 KiB.
func (c *copier) makeRoom(n int) error {
	if n <= cap(c.out)-len(c.out) {
		return nil
	}
	if err := c.flush(); err != nil {
		return err
	}
	if c.out == nil {
		c.out = getBuffer(largeBuffer)[:0]
	}
	return nil
}

func (c *copier) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	err := c.write(c.out)
	c.drop()
	return err
}

// drop forgets what is gathered.
func (c *copier) drop() {
	if c.out != nil {
		putBuffer(c.out)
		c.out = nil
	}
}

// write writes p as far as the meter grants. What failed to be written is given
// back, so the meter stays exact to the byte.
func (c *copier) write(p []byte) error {
	for len(p) > 0 {
		granted := len(p)
		if c.down != nil {
			var err error
			if granted, err = takeBytes(c.down, len(p)); err != nil {
				return &CopyError{Metering, err}
			}
		}
		n, err := c.dst.Write(p[:granted])
		c.moved.Out += int64(n)
		if err == nil && n < granted {
			err = io.ErrShortWrite
		}
		if c.down != nil {
			c.down.Return(granted - n)
		}
		if err != nil {
			return &CopyError{Writing, err}
		}
		p = p[granted:]
	}
	return nil
}
