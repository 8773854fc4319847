//go:build !linux

package gateway

import (
	"io"
	"net"
)

// system is the part of a direction that depends on the operating system:
// elsewhere than on Linux nothing, bytes are copied in user space.
type system struct {
	res   int64
	epoch uint32
}

func (d *direction) init(t *tunnel, src, dst *net.TCPConn, down bool) {
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
		if e, ok := d.deliver(b[:n]); !ok {
			return e
		}
		switch {
		case err == io.EOF:
			return finished
		case err != nil:
			return d.broken(sourceGone)
		}
	}
}

// deliverEarly delivers what the target sent behind an upstream's answer.
func (d *direction) deliverEarly() (ending, bool) {
	e, ok := d.deliver(d.early)
	d.early = nil
	return e, ok
}

// deliver writes what was read, as far as the pool allows.
func (d *direction) deliver(rest []byte) (ending, bool) {
	p := &d.t.entry.pool
	for len(rest) > 0 {
		var v verdict
		if d.res, d.epoch, v = p.reserve(int64(len(rest))); v == waits {
			if v = p.await(d.t.c.interrupted); v == flows {
				continue
			}
		}
		if v != flows {
			return d.verdict(v), false
		}
		m, err := d.dst.Write(rest[:d.res])
		d.count(int64(m))
		d.t.c.moved.Store(int64(mono()))
		if err != nil {
			return d.broken(sinkGone), false
		}
		rest = rest[m:]
	}
	return 0, true
}

// count settles the reservation: up is what was taken, down what was written.
func (d *direction) count(written int64) {
	p := &d.t.entry.pool
	if d.down {
		p.settle(d.epoch, d.res, 0, written)
		d.total += written
	} else {
		p.settle(d.epoch, d.res, d.res, 0)
		d.total += d.res
	}
	d.res = 0
}

func (d *direction) drop() {}
