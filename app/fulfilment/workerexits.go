package fulfilment

import (
	"context"
	"fmt"
	"net/netip"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// WorkerExits is where the workers of one session get their exits.
type WorkerExits struct {
	session  session.Session
	provider ports.Dynamic
	local    ports.ExitPool // nil where the exits are a seller's
	access   procurement.Access
}

// WorkerExits returns where the workers of an active session get their exits. It returns
// worker.ErrParameter if there is none.
func (f *Service) WorkerExits(ctx context.Context, s session.Session) (WorkerExits, error) {
	if s.Type != session.Dynamic {
		return WorkerExits{}, worker.ErrParameter.Msgf("a static session has no workers: its addresses are its identities")
	}
	if p, ok := f.catalog.Provider(s.Provider); ok && !p.Capabilities().Workers {
		return WorkerExits{}, worker.ErrParameter.Msgf("the source of this session supports no workers; " +
			"the field workers of a product shows which do")
	}
	return f.Turns(ctx, s)
}

// Turns is like WorkerExits for the exits that a dynamic session itself has one after the other, of which another one
// may be in use only once it was rotated.
func (f *Service) Turns(ctx context.Context, s session.Session) (WorkerExits, error) {
	p, ok := f.catalog.Provider(s.Provider)
	if !ok {
		return WorkerExits{}, ports.ErrProvider.Msgf("the provider of this session is not configured any more")
	}
	c := WorkerExits{session: s}
	c.provider, _ = p.(ports.Dynamic)
	caps := p.Capabilities()
	if c.provider == nil {
		return WorkerExits{}, worker.ErrParameter.Msgf("the source of this session supports no workers; " +
			"the field workers of a product shows which do")
	}
	if !caps.ViaUpstream {
		if c.local, ok = p.(ports.ExitPool); !ok {
			return WorkerExits{}, worker.ErrParameter.Msgf("the source of this session supports no workers")
		}
		return c, nil
	}
	if caps.InProcess {
		return c, nil
	}
	d, err := f.deliveredTo(ctx, s)
	if err == nil && d.Direct {
		err = worker.ErrParameter.Msgf("a session at its seller's own proxy has no workers")
	}
	c.access = d.Access
	return c, err
}

// Local reports whether exits are addresses of this host.
func (c WorkerExits) Local() bool { return c.local != nil }

// Pool returns the addresses of this host; nil where the exits are a seller's.
func (c WorkerExits) Pool() ports.ExitPool { return c.local }

// Exits lists the addresses in a place; nil where the exits are a seller's.
func (c WorkerExits) Exits(l session.Location) []netip.Addr {
	if c.local == nil {
		return nil
	}
	return c.local.Exits(l)
}

// Has reports whether an exit of a worker is still there.
func (c WorkerExits) Has(exit session.Exit) bool {
	if c.local == nil {
		return true
	}
	for _, a := range c.local.Exits(session.Location{}) {
		if a == exit.IP {
			return true
		}
	}
	return false
}

// Binds reports whether connections can be made from an exit at this moment.
func (c WorkerExits) Binds(exit session.Exit) bool { return c.local == nil || c.local.Binds(exit.IP) }

// Seen returns the addresses of all exits by turn, where the source has them (ports.ExitLister); else nil.
func (c WorkerExits) Seen(l session.Location) []netip.Addr {
	if list, ok := c.provider.(ports.ExitLister); ok {
		return list.InTurn(c.access, l)
	}
	return nil
}

// Endpoint returns the upstream proxy for a token; nil where exits are addresses of this host. It fails
// with worker.ErrParameter for what the seller cannot be asked for.
func (c WorkerExits) Endpoint(l session.Location, token string, turn int, strict bool) (*procurement.Endpoint, error) {
	if c.local != nil {
		return nil, nil
	}
	e, err := c.provider.Endpoint(c.access, procurement.Target{Location: l, Token: token, Turn: turn, Strict: strict})
	if procurement.ClassOf(err) == procurement.Invalid {
		return nil, worker.ErrParameter.Msgf("the seller of this session cannot give that: %s", err)
	}
	if err != nil {
		return nil, fmt.Errorf("the endpoint of a worker of %s: %w", c.session.ID, err)
	}
	return &e, nil
}
