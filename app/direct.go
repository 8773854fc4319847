package app

import (
	"cmp"
	"context"
	"errors"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// DirectProxy is an upstream proxy that an agent is given as it is.
type DirectProxy struct {
	HTTP, SOCKS5 procurement.Endpoint // the zero Endpoint: not spoken
}

// pollDirect is how often a provider is asked what passed through a direct
// session.
const pollDirect = 30 * time.Second

// sellsDirect reports whether a session that is delivered now gets the provider's
// own proxy for its address. One whose product is not sold any more goes through
// the gateway.
func (u *Sessions) sellsDirect(s session.Session) bool {
	p, err := u.catalog.product(s.ProductNo)
	return err == nil && p.Direct
}

// withDirect adds the upstream proxies to the view of a direct session. A
// provider that cannot tell them leaves it without an address.
func (u *Sessions) withDirect(ctx context.Context, v *SessionView) error {
	if v.Status != session.Active {
		return nil
	}
	p, known := u.catalog.provider(v.Provider)
	if known && !p.Capabilities().Direct {
		return nil
	}
	g, err := u.goodsOf(ctx, v.Session)
	if errors.Is(err, ports.ErrProvider) {
		return nil // of a provider without orders
	}
	if err != nil || !g.Direct {
		return err
	}
	v.Direct = []DirectProxy{}
	if !known {
		return nil
	}
	byHTTP, err := endpoints(p, v.Session, g, session.HTTP)
	bySOCKS, err2 := endpoints(p, v.Session, g, session.SOCKS5)
	if err := cmp.Or(err, err2); err != nil {
		u.log.Warn("a direct session has no address", "session_id", v.ID, "provider", v.Provider, "err", err)
		return nil
	}
	v.Direct = make([]DirectProxy, len(byHTTP))
	for i := range byHTTP {
		if byHTTP[i].Protocol == session.HTTP {
			v.Direct[i].HTTP = byHTTP[i]
		}
		if bySOCKS[i].Protocol == session.SOCKS5 {
			v.Direct[i].SOCKS5 = bySOCKS[i]
		}
	}
	return nil
}

// lastUsageFor bounds the call of lastUsage: the agent that ends a session waits
// for it.
const lastUsageFor = 2 * time.Second

// lastUsage reads once more what passed through a direct session that its agent
// ends: what was used since the last poll would be free otherwise. A provider
// that does not answer within lastUsageFor does not keep the session from ending.
func (u *Sessions) lastUsage(ctx context.Context, agentID, id string) error {
	var s session.Session
	var orders []procurement.Order
	err := u.store.Read(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if s, err = tx.Sessions().Get(ctx, agentID, id); err == nil && s.Status == session.Active {
			orders, err = tx.Orders().Of(ctx, id)
		}
		return err
	})
	if err != nil {
		return err
	}
	p, known := u.catalog.provider(s.Provider)
	o, bought := purchased(orders)
	if !known || !bought {
		return nil
	}
	g, err := u.unseal(o)
	if err != nil || !g.Direct {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, lastUsageFor)
	defer cancel()
	if err := u.pollUsage(bounded, p, s, o); err != nil {
		u.log.Warn("a direct session ends without its last usage", "session_id", id, "provider", s.Provider, "err", err)
	}
	return nil
}

// pollUsage books what a provider counted of a direct session. What it counted
// beyond the limit is not charged.
func (u *Sessions) pollUsage(ctx context.Context, p ports.Provider, s session.Session, o procurement.Order) error {
	d, ok := p.(ports.Dynamic)
	if !ok || s.Type != session.Dynamic {
		return nil
	}
	bounded, cancel := call(ctx)
	defer cancel()
	used, err := d.Usage(bounded, o.Ref)
	u.count(p, "usage", err)
	if err != nil {
		return err
	}
	return u.change(ctx, o, func(ctx context.Context, b books, s session.Session, o procurement.Order) error {
		if s.Status != session.Active {
			return nil
		}
		before, err := b.tx.Traffic().Usage(ctx, s.ID)
		if err != nil {
			return err
		}
		more := min(used.Bytes, s.Bytes) - before.Used()
		if more <= 0 {
			return nil
		}
		delta := traffic.Delta{Down: more, At: b.now}
		if err := b.tx.Traffic().PutUsage(ctx, s.ID, delta); err != nil {
			return err
		}
		hour := b.now.Truncate(time.Hour)
		if err := b.tx.Traffic().Record(ctx, s.AgentID, s.ID, hour, ports.Totals{Down: more}); err != nil {
			return err
		}
		if err := b.tx.Counters().Add(ctx, s.AgentID, ports.Tally{Bytes: more}); err != nil {
			return err
		}
		if before.Used()+more >= s.Bytes {
			return u.expire(ctx, b.tx, s, session.TrafficExhausted, b.now)
		}
		if before.UpdatedAt.Before(hour) {
			return settleLater(ctx, b.tx, s.ID, hour.Add(time.Hour), b.now)
		}
		return nil
	})
}
