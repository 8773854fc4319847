package app

import (
	"context"
	"fmt"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// hops are the upstream proxies of an active session's exits, one for each; nil:
// the exits are this host's.
func (u *Sessions) hops(ctx context.Context, s session.Session) ([]procurement.Endpoint, error) {
	p, ok := u.catalog.provider(s.Provider)
	if !ok {
		return nil, ports.ErrProvider.Msgf("the provider of this session is not configured any more")
	}
	caps := p.Capabilities()
	if !caps.ViaUpstream {
		return nil, nil
	}
	var g goods
	if !caps.InProcess {
		var err error
		if g, err = u.goodsOf(ctx, s); err != nil {
			return nil, err
		}
	}
	if g.Direct {
		return nil, session.ErrNotFound // its address is not the gateway's
	}
	return endpoints(p, s, g, "")
}

// endpoints are the upstream proxies of a session's exits, for a protocol; empty:
// whichever the provider prefers.
func endpoints(p ports.Provider, s session.Session, g goods, proto session.Protocol) ([]procurement.Endpoint, error) {
	if s.Type == session.Dynamic {
		d, ok := p.(ports.Dynamic)
		if !ok {
			return nil, ports.ErrProvider
		}
		e, err := d.Endpoint(g.Access, procurement.Target{Location: s.Location, Token: procurement.Token(s.ID, s.Rotation.Count), Protocol: proto})
		if err != nil {
			return nil, fmt.Errorf("the endpoint of %s: %w", s.ID, err)
		}
		return []procurement.Endpoint{e}, nil
	}
	list := make([]procurement.Endpoint, len(s.Exits))
	for i, exit := range s.Exits {
		for _, ip := range g.IPs {
			if ip.Addr == exit.IP {
				list[i], _ = ip.Endpoint(proto)
			}
		}
		if list[i].Host == "" {
			return nil, ports.ErrProvider.Msgf("the upstream does not tell how to reach an address of this session")
		}
	}
	return list, nil
}

// goodsOf is what was delivered for a session.
func (u *Sessions) goodsOf(ctx context.Context, s session.Session) (g goods, err error) {
	var orders []procurement.Order
	err = u.store.Read(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		orders, err = tx.Orders().Of(ctx, s.ID)
		return err
	})
	if err != nil {
		return g, err
	}
	o, ok := purchased(orders)
	if !ok {
		return g, ports.ErrProvider.Msgf("nothing was bought for this session")
	}
	return u.unseal(o)
}
