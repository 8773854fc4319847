package app

import (
	"context"
	"errors"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// activateLocal asks a provider that does no IO for the exits of a session and
// activates it, all in one unit.
func (u *Sessions) activateLocal(ctx context.Context, b books, s session.Session, from procurement.Source,
	provider ports.Provider) (session.Session, error) {
	in := intentFor(s, from)
	if s.Type == session.Static {
		var err error
		if in.Taken, err = b.tx.Addresses().Taken(ctx, provider.Name()); err != nil {
			return s, err
		}
	}
	d, err := provider.Order(ctx, in)
	u.count(provider, "order", err)
	if err != nil {
		return s, ports.Refusal(procurement.ClassOf(err))
	}
	return u.activate(ctx, b, s, exitsOf(s, d))
}

// activate gives a session its exits and charges a static one. Exits that are
// not what was ordered, or that another session owns, are ports.ErrProvider.
func (u *Sessions) activate(ctx context.Context, b books, s session.Session, exits []session.Exit) (session.Session, error) {
	if len(exits) != s.Quantity {
		return s, ports.ErrProvider.Msgf("the upstream delivered %d addresses and not %d; try again", len(exits), s.Quantity)
	}
	if s.Type == session.Static {
		ips := make([]string, len(exits))
		for i, e := range exits {
			ips[i] = e.IP.String()
		}
		err := b.tx.Addresses().Take(ctx, s.Provider, s.ID, ips)
		if errors.Is(err, ports.ErrDuplicate) {
			return s, ports.ErrProvider.Msgf("the upstream delivered an address that is taken; try again")
		}
		if err != nil {
			return s, err
		}
	}
	s, err := s.Activate(exits, b.now)
	if err != nil {
		return s, err
	}
	if err := tellSession(ctx, b.tx, b.ids, b.now, webhook.SessionActive, s); err != nil || s.Type == session.Dynamic {
		return s, err
	}
	if err := b.charge(ctx, &s, s.Money.Held.Total()); err != nil {
		return s, err
	}
	return s, expireLater(ctx, b.tx, s, b.now)
}
