//go:build !linux

package relay

import (
	"io"
	"net"

	"agentproxy/adapters/gateway/lease"
)

// system is the part of a direction that depends on the operating system. Outside
// Linux bytes are copied in user space.
type system struct {
	res   int64
	epoch uint32
}

func (d *direction) init(t *Tunnel, src, dst *net.TCPConn, down bool) {
	d.t, d.src, d.dst, d.down = t, src, dst, down
}

// run relays until the direction ends.
func (d *direction) run() ending {
	if len(d.early) > 0 {
		if e, ok := d.sendEarly(); !ok {
			return e
		}
	}
	b := buffers.Get().(*buffer)
	defer buffers.Put(b)
	for {
		n, err := d.src.Read(b[:])
		if n > 0 && d.loops(b[:n]) {
			return interrupted
		}
		if e, ok := d.deliver(b[:n]); !ok {
			return e
		}
		switch {
		case err == io.EOF:
			return finished
		case err != nil:
			return d.failed(sourceFailed)
		}
	}
}

// deliverEarly writes what the target sent behind an upstream's answer.
func (d *direction) deliverEarly() (ending, bool) {
	e, ok := d.deliver(d.early)
	d.early = nil
	return e, ok
}

// deliver writes rest, as far as the pool grants it.
func (d *direction) deliver(rest []byte) (ending, bool) {
	p := d.t.pool
	for len(rest) > 0 {
		var v lease.Verdict
		if d.res, d.epoch, v = p.Reserve(int64(len(rest))); v == lease.Blocked {
			if v = p.Await(d.t.Conn.Interrupted); v == lease.Granted {
				continue
			}
		}
		if v != lease.Granted {
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

func (d *direction) drop() {}
