package relay

import (
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/lease"
	"agentproxy/adapters/gateway/monotime"
)

// A direction starts with a small buffer and changes to splice(2), which moves bytes
// inside the kernel, once spliceAfter bytes arrived within spliceWindow.
const (
	spliceAfter  = 64 << 10
	spliceWindow = 250 * time.Millisecond
)

// system is the part of a direction that depends on the operating system.
type system struct {
	in, out            syscall.RawConn // nil for what has no descriptor; out for TLS too, which is written with waiting
	readable, writable func(fd uintptr) bool
	readNow            func(fd uintptr, p []byte) (int, error) // of TLS; nil for a socket
	drained            bool                                    // readNow has found nothing

	buf  *buffer // holds the unwritten bytes, unless pipe does
	pipe *pipe
	n    int // bytes read and not yet written
	off  int // where they begin in buf
	v    lease.Verdict
	err  error

	bulk  bool // splice
	since time.Duration
	burst int
}

// nowReader is a source on a descriptor that it decrypts: TLS.
type nowReader interface {
	syscall.Conn
	ReadNow(fd uintptr, p []byte) (int, error)
}

func (d *direction) init(t *Tunnel, src, dst client.Stream, down bool) {
	d.t, d.src, d.dst, d.down = t, src, dst, down
	switch s := src.(type) {
	case *net.TCPConn:
		d.in, _ = s.SyscallConn() // fails on a nil conn only
	case nowReader:
		d.in, _ = s.SyscallConn()
		d.readNow = s.ReadNow
	}
	if s, ok := dst.(*net.TCPConn); ok {
		d.out, _ = s.SyscallConn()
	}
	d.readable, d.writable = d.read, d.write
	d.since = monotime.Now()
}

// run relays until the direction ends. It holds no buffer, pipe or reservation while
// it waits for a source that has a descriptor.
func (d *direction) run() ending {
	if len(d.early) > 0 {
		if e, ok := d.sendEarly(); !ok {
			return e
		}
	}
	if d.in == nil {
		return d.copy()
	}
	p := d.t.pool
	for {
		d.v, d.err = lease.Granted, nil
		if d.in.Read(d.readable) != nil {
			return interrupted
		}
		switch {
		case d.n > 0:
			if d.buf != nil && d.loops(d.buf[d.off:d.off+d.n]) {
				return interrupted
			}
			if e, ok := d.deliver(); !ok {
				return e
			}
		case d.v == lease.Blocked:
			if v := p.Await(d.t.Conn.Interrupted); v != lease.Granted {
				return endingOf(v)
			}
		case d.v != lease.Granted:
			return endingOf(d.v)
		case d.err == io.EOF:
			return finished
		case d.err != nil:
			return d.failed(sourceFailed)
		}
	}
}

// read reads from the source's descriptor. It is called until it returns true; then bytes are ready
// to be written, or err or v is set.
func (d *direction) read(fd uintptr) bool {
	p := d.t.pool
	n, epoch, v := p.Reserve(int64(d.readSize()))
	if v != lease.Granted {
		if v == lease.Blocked && !d.peek(fd) {
			return false // wait for the lease only if there is something to relay
		}
		if d.err == nil {
			d.v = v
		}
		return true
	}
	got, err := d.readSome(int(fd), int(n))
	switch {
	case err == unix.EAGAIN:
		p.Settle(epoch, n, 0, 0)
		d.drop()
		return false
	case err != nil || got == 0:
		p.Settle(epoch, n, 0, 0)
		d.drop()
		if d.err = err; err == nil {
			d.err = io.EOF
		}
	case d.down:
		if n > int64(got) {
			p.Settle(epoch, n-int64(got), 0, 0)
		}
		d.n, d.res, d.epoch = got, int64(got), epoch
	default: // upload counts when it is read
		p.Settle(epoch, n, int64(got), 0)
		d.n = got
		d.total += int64(got)
	}
	return true
}

// readSize returns how much one read may take. It gets a pipe for a direction that moves
// much; if none is available the direction continues in user space.
func (d *direction) readSize() int {
	if d.bulk && d.pipe == nil && d.buf == nil {
		d.pipe = d.t.relay.pipes.get()
	}
	if d.pipe != nil {
		return d.pipe.size
	}
	return len(buffer{})
}

// readSome reads at most n bytes into the pipe or a buffer.
func (d *direction) readSome(fd, n int) (got int, err error) {
	if d.pipe != nil {
		return splice(fd, d.pipe.w, n)
	}
	if d.buf == nil {
		d.buf = buffers.Get().(*buffer)
	}
	for d.readNow == nil {
		if got, err = unix.Read(fd, d.buf[:min(n, len(d.buf))]); err != unix.EINTR {
			break
		}
	}
	if d.readNow != nil {
		got, err = d.readNow(uintptr(fd), d.buf[:min(n, len(d.buf))])
		d.drained = err == unix.EAGAIN
	}
	d.off = 0
	if !d.bulk && got > 0 && d.readNow == nil && d.out != nil {
		d.measure(got)
	}
	return got, err
}

// measure decides whether the direction moves enough to use splice.
func (d *direction) measure(got int) {
	if d.burst += got; d.burst < spliceAfter {
		return
	}
	now := monotime.Now()
	d.bulk = now-d.since < spliceWindow
	d.since, d.burst = now, 0
}

// peek reports whether the source has bytes or has ended, without reading any. At
// the end, and on a failure, it sets err.
func (d *direction) peek(fd uintptr) bool {
	if d.readNow != nil && !d.drained {
		return true // there may be decrypted bytes
	}
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

// deliverEarly writes what the target sent behind an upstream's answer, metered like
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

// deliver writes everything that was read.
func (d *direction) deliver() (ending, bool) {
	for d.n > 0 {
		if v := d.cover(); v != lease.Granted {
			return endingOf(v), false
		}
		if d.out == nil {
			d.writeWaiting()
		} else if d.out.Write(d.writable) != nil {
			return interrupted, false
		}
		if d.err != nil {
			return d.failed(sinkFailed), false
		}
	}
	if d.pipe == nil {
		d.drop()
	}
	return 0, true
}

// cover makes sure that at least one byte may be written to the client: a lease may
// expire or be lost while the client does not read.
func (d *direction) cover() lease.Verdict {
	if !d.down {
		return lease.Granted
	}
	p := d.t.pool
	for {
		if d.res > 0 && p.Covers(d.epoch) {
			return lease.Granted
		}
		var v lease.Verdict
		if d.res > 0 && p.Current(d.epoch) {
			v = p.AwaitRenewal(d.epoch, d.t.Conn.Interrupted)
		} else if d.res, d.epoch, v = p.Reserve(int64(d.n)); v == lease.Blocked {
			v = p.Await(d.t.Conn.Interrupted)
		}
		if v != lease.Granted {
			return v
		}
	}
}

// write writes to the sink's descriptor. It is called until it returns true; then everything is
// written, or the rest needs a new reservation, or err is set.
func (d *direction) write(fd uintptr) bool {
	p := d.t.pool
	for d.n > 0 {
		most := d.n
		if d.down {
			if most = min(d.n, int(d.res)); most == 0 || !p.Covers(d.epoch) {
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
		d.wrote(m)
	}
	return true
}

// writeWaiting writes what is reserved to a sink without a descriptor.
func (d *direction) writeWaiting() {
	most := d.n
	if d.down {
		most = min(most, int(d.res))
	}
	m, err := d.dst.Write(d.buf[d.off : d.off+most])
	d.wrote(m)
	d.err = err
}

// wrote accounts for m bytes that were written.
func (d *direction) wrote(m int) {
	d.n -= m
	d.off += m
	if d.down {
		d.res -= int64(m)
		d.total += int64(m)
		d.t.pool.Settle(d.epoch, int64(m), 0, int64(m))
	}
	d.t.Conn.Touch()
}

// put writes at most n bytes to the sink.
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

// drop releases buffer, pipe and reservation. What was read and not written is charged
// behind an upstream proxy.
func (d *direction) drop() {
	if d.pipe != nil {
		d.t.relay.pipes.put(d.pipe, d.n == 0)
		d.pipe = nil
	}
	if d.buf != nil {
		buffers.Put(d.buf)
		d.buf = nil
	}
	if d.res > 0 {
		var lost int64
		if d.t.Opening.ChargeRead {
			lost = d.res
		}
		d.t.pool.Settle(d.epoch, d.res, 0, lost)
		d.total += lost
	}
	d.n, d.res = 0, 0
}

// splice moves at most n bytes between two descriptors, one of which is a pipe.
func splice(from, to, n int) (int, error) {
	for {
		m, err := unix.Splice(from, nil, to, nil, n, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if err != unix.EINTR {
			return int(max(m, 0)), err
		}
	}
}
