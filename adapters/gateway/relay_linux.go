package gateway

import (
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A direction begins with a small buffer and changes to splice(2), which moves
// bytes inside the kernel, once spliceAfter bytes came within spliceWindow.
const (
	spliceAfter  = 64 << 10
	spliceWindow = 250 * time.Millisecond
)

// system is the part of a direction that depends on the operating system.
type system struct {
	in, out            syscall.RawConn
	readable, writable func(fd uintptr) bool

	buf   *buffer // holds what is in hand, if not pipe
	pipe  *pipe
	n     int    // bytes in hand: read and not yet written
	off   int    // where they begin in buf
	res   int64  // down: of these are reserved
	epoch uint32 // of the reservation
	v     verdict
	err   error

	bulk  bool // splice
	since time.Duration
	burst int
}

func (d *direction) init(t *tunnel, src, dst *net.TCPConn, down bool) {
	d.t, d.src, d.dst, d.down = t, src, dst, down
	d.in, _ = src.SyscallConn() // fails on a nil conn only
	d.out, _ = dst.SyscallConn()
	d.readable, d.writable = d.read, d.write
	d.since = mono()
}

// run relays until the direction ends. Between two rounds nothing is held: no
// buffer, no pipe, no reservation.
func (d *direction) run() ending {
	if len(d.early) > 0 {
		if e, ok := d.sendEarly(); !ok {
			return e
		}
	}
	p := &d.t.entry.pool
	for {
		d.v, d.err = flows, nil
		if d.in.Read(d.readable) != nil {
			return interrupted
		}
		switch {
		case d.n > 0:
			if e, ok := d.deliver(); !ok {
				return e
			}
		case d.v == waits:
			if v := p.await(d.t.c.interrupted); v != flows {
				return d.verdict(v)
			}
		case d.v != flows:
			return d.verdict(d.v)
		case d.err == io.EOF:
			return finished
		case d.err != nil:
			return d.broken(sourceGone)
		}
	}
}

// read is called with the source's descriptor until it returns true: then there
// is something in hand, or err or v says why not.
func (d *direction) read(fd uintptr) bool {
	p := &d.t.entry.pool
	n, epoch, v := p.reserve(int64(d.room()))
	if v != flows {
		if v == waits && !d.peek(fd) {
			return false // nothing to relay is nothing to wait for
		}
		if d.err == nil {
			d.v = v
		}
		return true
	}
	got, err := d.take(int(fd), int(n))
	switch {
	case err == unix.EAGAIN:
		p.settle(epoch, n, 0, 0)
		d.drop()
		return false
	case err != nil || got == 0:
		p.settle(epoch, n, 0, 0)
		d.drop()
		if d.err = err; err == nil {
			d.err = io.EOF
		}
	case d.down:
		if n > int64(got) {
			p.settle(epoch, n-int64(got), 0, 0)
		}
		d.n, d.res, d.epoch = got, int64(got), epoch
	default: // taken from the client is used
		p.settle(epoch, n, int64(got), 0)
		d.n = got
		d.total += int64(got)
	}
	return true
}

// room is how much one read may take. It gets a pipe for a direction that moves
// much; without one the direction goes on in user space.
func (d *direction) room() int {
	if d.bulk && d.pipe == nil && d.buf == nil {
		d.pipe = d.t.g.pipes.get()
	}
	if d.pipe != nil {
		return d.pipe.size
	}
	return len(buffer{})
}

// take reads at most n bytes into the pipe or a buffer.
func (d *direction) take(fd, n int) (got int, err error) {
	if d.pipe != nil {
		return splice(fd, d.pipe.w, n)
	}
	if d.buf == nil {
		d.buf = buffers.Get().(*buffer)
	}
	for {
		if got, err = unix.Read(fd, d.buf[:min(n, len(d.buf))]); err != unix.EINTR {
			break
		}
	}
	d.off = 0
	if !d.bulk && got > 0 {
		d.measure(got)
	}
	return got, err
}

// measure notices a direction that moves much.
func (d *direction) measure(got int) {
	if d.burst += got; d.burst < spliceAfter {
		return
	}
	now := mono()
	d.bulk = now-d.since < spliceWindow
	d.since, d.burst = now, 0
}

// peek says whether the source has bytes, or its end, without taking any.
func (d *direction) peek(fd uintptr) bool {
	var b [1]byte
	for {
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return false
		case err == nil && n == 0:
			d.err = io.EOF
		case err != nil:
			d.err = err
		}
		return true
	}
}

// deliverEarly delivers what the target sent behind an upstream's answer, like
// everything that it sends later.
func (d *direction) deliverEarly() (ending, bool) {
	for len(d.early) > 0 {
		d.buf, d.off = buffers.Get().(*buffer), 0
		d.n = copy(d.buf[:], d.early)
		d.early = d.early[d.n:]
		if e, ok := d.deliver(); !ok {
			return e, false
		}
	}
	d.early = nil
	return 0, true
}

// deliver writes everything in hand.
func (d *direction) deliver() (ending, bool) {
	for d.n > 0 {
		if v := d.cover(); v != flows {
			return d.verdict(v), false
		}
		if d.out.Write(d.writable) != nil {
			return interrupted, false
		}
		if d.err != nil {
			return d.broken(sinkGone), false
		}
	}
	if d.pipe == nil {
		d.drop()
	}
	return 0, true
}

// cover makes sure that something of what is in hand may be written to the
// client: a lease can run out or be lost while the client does not read.
func (d *direction) cover() verdict {
	if !d.down {
		return flows
	}
	p := &d.t.entry.pool
	for {
		if d.res > 0 && p.covers(d.epoch) {
			return flows
		}
		var v verdict
		if d.res > 0 && p.epoch.Load() == d.epoch {
			v = p.refenced(d.epoch, d.t.c.interrupted)
		} else if d.res, d.epoch, v = p.reserve(int64(d.n)); v == waits {
			v = p.await(d.t.c.interrupted)
		}
		if v != flows {
			return v
		}
	}
}

// write is called with the sink's descriptor until it returns true: then all is
// written, or it has to be covered anew, or err says why not.
func (d *direction) write(fd uintptr) bool {
	p := &d.t.entry.pool
	for d.n > 0 {
		most := d.n
		if d.down {
			if most = min(d.n, int(d.res)); most == 0 || !p.covers(d.epoch) {
				return true
			}
		}
		m, err := d.put(int(fd), most)
		switch {
		case err == unix.EAGAIN:
			return false
		case err != nil:
			d.err = err
			return true
		}
		d.n -= m
		d.off += m
		if d.down {
			d.res -= int64(m)
			d.total += int64(m)
			p.settle(d.epoch, int64(m), 0, int64(m))
		}
		d.t.c.moved.Store(int64(mono()))
	}
	return true
}

func (d *direction) put(fd, n int) (m int, err error) {
	if d.pipe != nil {
		m, err = splice(d.pipe.r, fd, n)
	} else {
		for {
			if m, err = unix.Write(fd, d.buf[d.off:d.off+n]); err != unix.EINTR {
				break
			}
		}
	}
	if m == 0 && err == nil {
		err = io.ErrUnexpectedEOF
	}
	return m, err
}

// drop lets go of buffer, pipe and reservation.
func (d *direction) drop() {
	if d.pipe != nil {
		d.t.g.pipes.put(d.pipe, d.n == 0)
		d.pipe = nil
	}
	if d.buf != nil {
		buffers.Put(d.buf)
		d.buf = nil
	}
	if d.res > 0 {
		d.t.entry.pool.settle(d.epoch, d.res, 0, 0)
	}
	d.n, d.res = 0, 0
}

func splice(from, to, n int) (int, error) {
	for {
		m, err := unix.Splice(from, nil, to, nil, n, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if err != unix.EINTR {
			return int(max(m, 0)), err
		}
	}
}
