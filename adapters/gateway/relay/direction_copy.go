package relay

import (
	"io"
	"sync"

	"agentproxy/adapters/gateway/lease"
)

// waiting is what a source without a descriptor is waited for with. It is smaller than a buffer, because such a
// direction holds it while it is quiet.
type waiting [2 << 10]byte

var waitings = sync.Pool{New: func() any { return new(waiting) }}

// copy relays in user space until the direction ends: from a stream of HTTP/2, and outside Linux. What fills the small
// buffer is followed by more, which a large one takes.
func (d *direction) copy() ending {
	small := waitings.Get().(*waiting)
	defer waitings.Put(small)
	for {
		n, err := d.src.Read(small[:])
		if e, ok := d.passOn(small[:n]); !ok {
			return e
		}
		if n == len(small) && err == nil {
			if e, ok := d.copyMuch(); !ok {
				return e
			}
		}
		switch {
		case err == io.EOF:
			return finished
		case err != nil:
			return d.failed(sourceFailed)
		}
	}
}

// copyMuch relays with a large buffer as long as a read fills the small one.
func (d *direction) copyMuch() (ending, bool) {
	b := buffers.Get().(*buffer)
	defer buffers.Put(b)
	for {
		n, err := d.src.Read(b[:])
		if e, ok := d.passOn(b[:n]); !ok {
			return e, false
		}
		switch {
		case err == io.EOF:
			return finished, false
		case err != nil:
			return d.failed(sourceFailed), false
		case n < len(b): // nothing more is there
			return 0, true
		}
	}
}

// passOn writes what was read, as far as the pool grants it.
func (d *direction) passOn(rest []byte) (ending, bool) {
	if len(rest) > 0 && d.loops(rest) {
		return interrupted, false
	}
	p := d.t.pool
	for len(rest) > 0 {
		var v lease.Verdict
		if d.res, d.epoch, v = p.Reserve(int64(len(rest))); v == lease.Blocked {
			if v = p.Await(d.t.Conn.Interrupted); v == lease.Granted {
				continue
			}
		}
		if v != lease.Granted {
			d.res = 0
			return endingOf(v), false
		}
		m, err := d.dst.Write(rest[:d.res])
		d.count(int64(m))
		d.t.Conn.Touch()
		rest = rest[m:]
		if err != nil {
			d.charge(int64(len(rest)))
			return d.failed(sinkFailed), false
		}
	}
	return 0, true
}

// count settles the reservation: upload by what was read, download by what was
// written.
func (d *direction) count(written int64) {
	p := d.t.pool
	if d.down {
		p.Settle(d.epoch, d.res, 0, written)
		d.total += written
	} else {
		p.Settle(d.epoch, d.res, d.res, 0)
		d.total += d.res
	}
	d.res = 0
}

// charge counts n bytes that were read and not written, behind an upstream proxy.
func (d *direction) charge(n int64) {
	if !d.down || !d.t.Opening.ChargeRead || n == 0 {
		return
	}
	if got, epoch, v := d.t.pool.Reserve(n); v == lease.Granted {
		d.t.pool.Settle(epoch, got, 0, got)
		d.total += got
	}
}
