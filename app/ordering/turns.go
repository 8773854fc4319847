package ordering

import (
	"context"
	"errors"
	"net/netip"

	"agentproxy/app/exitgate"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// Turn is an exit of a seller that met the rule of a session when it was probed: its token is the session's next.
type Turn struct {
	provider string
	rule     string // exit.Rule.Key
	turn     int
}

// fits reports whether the exit may be given to a session as it is now.
func (t *Turn) fits(s session.Session) bool {
	return t != nil && t.provider == s.Provider && t.rule == s.Require.Key() && t.turn >= nextTurn(s)
}

// nextTurn returns the first turn that a session did not have.
func nextTurn(s session.Session) int {
	if s.Status != session.Active {
		return 0
	}
	return s.Rotation.Turn() + 1
}

// Take gives a session the turn that was chosen for it; nil leaves it the next one. A session is given it once its
// rotation is counted.
func (t *Turn) Take(s session.Session) session.Session {
	if t != nil {
		s.Rotation.Skipped = t.turn - s.Rotation.Count
	}
	return s
}

// ErrNotSeen refuses a rule where the exits cannot be measured before they are given.
var ErrNotSeen = domain.InvalidField("require",
	"cannot be kept: this product's seller gives exits without a choice; leave it out")

// errNotCheap refuses a rule where the seller charges for each try.
var errNotCheap = domain.InvalidField("require",
	"cannot be kept: this product's seller charges for each exit; leave it out, and replace an address that is bad")

// errOnceActive refuses a rule for a purchase whose exits can be chosen later.
var errOnceActive = domain.InvalidField("require",
	"cannot be kept by a purchase from this product's seller; leave it out, and rotate the session with it")

// MayLearn refuses a rule that the source of a session cannot keep. It does no IO.
func MayLearn(u *Driver, s session.Session) error {
	known, _ := u.catalog.Provider(s.Provider)
	if _, ok := known.(ports.ExitPool); ok || s.Require.Empty() {
		return nil
	}
	_, listed := known.(ports.ExitLister)
	dynamic, ok := known.(ports.Dynamic)
	switch {
	case listed && s.Status != session.Active:
		return nil
	case s.Type == session.Static:
		return errNotCheap
	case !ok || !listed && !dynamic.Capabilities().Workers:
		return ErrNotSeen
	case s.Status != session.Active && !dynamic.Capabilities().InProcess:
		return errOnceActive
	}
	return nil
}

// Learn measures the exits that a session may get next, if it has a rule, and chooses the next one of a seller that
// gives them by tokens. It is called before the unit that gives the exit, and does nothing that has to be undone.
func Learn(ctx context.Context, u *Driver, s session.Session) (*Turn, error) {
	if err := MayLearn(u, s); err != nil || s.Require.Empty() {
		return nil, err
	}
	known, _ := u.catalog.Provider(s.Provider)
	if pool, ok := known.(ports.ExitPool); ok {
		return nil, u.Gate.Learn(ctx, s.Require, pool, s.Type, s.Location)
	}
	if list, ok := known.(ports.ExitLister); ok && s.Status != session.Active {
		return nil, learnListed(ctx, u, list, s)
	}
	exits, err := u.access.Turns(ctx, s)
	if errors.Is(err, worker.ErrParameter) { // a session at the seller's own proxy: its agent pays for what is probed
		return nil, ErrNotSeen
	}
	if err != nil {
		return nil, err
	}
	seen, avoid := exits.Seen(s.Location), netip.Addr{}
	if len(seen) > 0 {
		avoid = seen[s.Rotation.Turn()%len(seen)]
	}
	turn, err := u.Gate.Choose(ctx, exitgate.Turns{AgentID: s.AgentID, Seller: s.Provider, Rule: s.Require,
		Declared: s.Location.Country, From: nextTurn(s), Seen: seen, Avoid: avoid,
		Endpoint: func(turn int) (procurement.Endpoint, error) {
			e, err := exits.Endpoint(s.Location, procurement.Token(s.ID, turn), turn, false)
			if err != nil {
				return procurement.Endpoint{}, ports.ErrProvider
			}
			return *e, nil
		}})
	if err != nil {
		return nil, err
	}
	return &Turn{s.Provider, s.Require.Key(), turn}, nil
}

// Chooses reports whether Learn probes a seller for an active session.
func Chooses(u *Driver, s session.Session) bool {
	known, _ := u.catalog.Provider(s.Provider)
	_, local := known.(ports.ExitPool)
	return !local && !s.Require.Empty()
}

// learnListed asks the sources about the exits that an order of a list may get, and refuses one for which there are
// not enough that meet the rule.
func learnListed(ctx context.Context, u *Driver, p ports.ExitLister, s session.Session) error {
	product, err := u.catalog.Product(s.ProductNo)
	if err != nil {
		return err
	}
	list, err := p.Available(ctx, product.Source(s.Provider).Intent(s))
	u.calls.Count(p, "available", err)
	if err != nil {
		return ports.Refusal(procurement.ClassOf(err))
	}
	if err := u.Gate.LearnSeen(ctx, s.Require, list); err != nil {
		return err
	}
	var back map[string]bool
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
		back, err = givenBack(ctx, tx, s.AgentID, u.clock.Now())
		return err
	})
	if err != nil {
		return err
	}
	filter, passing := u.Gate.Filter(s.Require, s.Location.Country), 0
	for _, a := range list {
		if !back[a.String()] && filter.Passes(a) {
			passing++
		}
	}
	if passing < max(s.Quantity, 1) {
		return filter.Refusal(catalog.ErrOutOfStock)
	}
	return nil
}

// held returns an order that gets exits alone which meet the rule of its session.
func held(ctx context.Context, u *Driver, s session.Session, o procurement.Order) (procurement.Order, error) {
	if s.Require.Empty() || s.Status != session.Creating {
		return o, nil
	}
	// That there are not enough is for the provider to refuse: an order that is repeated has its exits already.
	if _, err := Learn(ctx, u, s); err != nil && !ports.NothingBought(err) {
		return o, err
	}
	o.Intent.Passes = u.Gate.Filter(s.Require, s.Location.Country).Passes
	return o, nil
}

// keeps reports whether a source can keep the rule of a session that was not probed for it.
func keeps(u *Driver, s session.Session, from procurement.Source) bool {
	p, _ := u.catalog.Provider(from.Provider)
	_, listed := p.(ports.ExitLister)
	return listed || s.Require.Empty()
}

// failureOf returns what a session fails with whose order was refused for a reason.
func failureOf(s session.Session, c procurement.Class) error {
	if c == procurement.OutOfStock && !s.Require.Empty() {
		return exit.ErrNotMet
	}
	return ports.Refusal(c)
}
