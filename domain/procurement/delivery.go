package procurement

import (
	"time"

	"agentproxy/domain/session"
)

// completeWithin is how long a provider may take to deliver addresses one after the other.
const completeWithin = 10 * time.Minute

// Exits returns the exits of a delivery to a session of a type. A dynamic session at
// an upstream has one, of unknown address.
func (d Delivery) Exits(of session.Type) []session.Exit {
	if of == session.Dynamic && len(d.IPs) == 0 {
		return []session.Exit{{}}
	}
	exits := make([]session.Exit, len(d.IPs))
	for i, ip := range d.IPs {
		exits[i].IP = ip.Addr
	}
	return exits
}

// Refs returns the provider's ids of a list.
func Refs(list []Delivery) []string {
	var refs []string
	for _, d := range list {
		refs = append(refs, d.Ref)
	}
	return refs
}

// Incomplete reports whether the provider is still delivering the addresses of an order,
// one after the other, so that a live delivery is to be read again.
func (o Order) Incomplete(d Delivery, now time.Time) bool {
	return d.State == Live && o.Intent.Type == session.Static && len(d.IPs) < o.Intent.Quantity &&
		now.Sub(o.SentAt) < completeWithin
}

// Await records what the provider has of an order that it accepted and had not delivered.
// frozen is set if the order becomes frozen: it is not delivered FreezeAfter it was sent.
func (o Order) Await(d Delivery, now time.Time) (_ Order, frozen bool) {
	o = o.Record(d, now)
	o.LostAt = time.Time{}
	if d.State != Pending {
		o.FrozenAt = time.Time{}
		return o, false
	}
	if o.FrozenAt.IsZero() && now.Sub(o.SentAt) >= FreezeAfter {
		o.FrozenAt = now
		return o, true
	}
	return o, false
}

// Postpone records why a step of a confirmed order failed and when it is taken again.
func (o Order) Postpone(reason string, now time.Time) Order {
	o.Reason, o.NextAt = reason, now.Add(Backoff(now.Sub(o.DecidedAt)))
	return o
}
