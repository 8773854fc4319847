//go:build !linux

package relay

import "agentproxy/adapters/gateway/client"

// system is the part of a direction that depends on the operating system. Outside
// Linux bytes are copied in user space.
type system struct{}

func (d *direction) init(t *Tunnel, src, dst client.Stream, down bool) {
	d.t, d.src, d.dst, d.down = t, src, dst, down
}

// run relays until the direction ends.
func (d *direction) run() ending {
	if len(d.early) > 0 {
		if e, ok := d.sendEarly(); !ok {
			return e
		}
	}
	return d.copy()
}

// deliverEarly writes what the target sent behind an upstream's answer.
func (d *direction) deliverEarly() (ending, bool) {
	e, ok := d.passOn(d.early)
	d.early = nil
	return e, ok
}

func (d *direction) drop() {}
