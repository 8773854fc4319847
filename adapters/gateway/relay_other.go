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
	p := &d.t.entry.pool
	for {
		n, err := d.src.Read(b[:])
		for rest := b[:n]; len(rest) > 0; {
			var v verdict
			if d.res, d.epoch, v = p.reserve(int64(len(rest))); v == waits {
				if v = p.await(d.t.c.interrupted); v == flows {
					continue
				}
			}
			if v != flows {
				return d.verdict(v)
			}
			m, werr := d.dst.Write(rest[:d.res])
			d.count(int64(m))
			d.t.c.moved.Store(int64(mono()))
			if werr != nil {
				return d.broken(sinkGone)
			}
			rest = rest[m:]
		}
		switch {
		case err == io.EOF:
			return finished
		case err != nil:
			return d.broken(sourceGone)
		}
	}
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
