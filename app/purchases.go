package app

import (
	"context"
	"errors"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// waitTurn is how long an order waits for another one like it before it looks
// again, and turnFor how long in all. That is longer than a seller takes to show
// what it made: what is undecided then waits for the operator.
const (
	waitTurn = 2 * time.Second
	turnFor  = 20 * time.Minute
)

var errNoTurn = procurement.Refuse(procurement.RateLimited, "an order like it is undecided at the provider")

// send places a planned order: what may be read is read first, then the order is
// marked as sent, and then there is one call that may spend money.
func (u *Sessions) send(ctx context.Context, _ session.Session, o procurement.Order) error {
	if o.Kind == procurement.Renewal {
		return u.sendRenewal(ctx, o)
	}
	p, ok := u.catalog.provider(o.Provider)
	if !ok {
		return u.refuse(ctx, o, procurement.Invalid, "the provider is not configured")
	}
	before, cost, err := u.survey(ctx, p, o)
	if err != nil {
		return u.refuse(ctx, o, provenClass(err), procurement.ReasonOf(err))
	}
	o, err = u.markSent(ctx, p, o, before, cost)
	if err != nil || o.Status != procurement.Sent {
		return err
	}
	return u.place(ctx, p, o)
}

// provenClass is the class of a call that buys nothing, whatever became of it.
func provenClass(err error) procurement.Class {
	if c := procurement.ClassOf(err); c != procurement.Ambiguous {
		return c
	}
	return procurement.Temporary
}

// survey asks what the order would cost and, where an order cannot be told by its
// key, what the provider lists already.
func (u *Sessions) survey(ctx context.Context, p ports.Provider, o procurement.Order) (before procurement.Snapshot, cost domain.Money, err error) {
	ctx, cancel := call(ctx)
	defer cancel()
	q, err := p.Quote(ctx, o.Intent)
	u.count(p, "quote", err)
	if err != nil {
		return before, 0, err
	}
	if q.Stock == procurement.StockNo {
		return before, 0, procurement.Refuse(procurement.OutOfStock, "the provider has none")
	}
	if o.Intent.MaxCost > 0 && q.Cost > o.Intent.MaxCost {
		return before, 0, procurement.Refuse(procurement.Conflict, "it costs "+q.Cost.String()+" and may cost "+o.Intent.MaxCost.String())
	}
	if p.Capabilities().Labels(o.Intent.Type) {
		return before, q.Cost, nil
	}
	found, err := p.Find(ctx, o.Intent)
	u.count(p, "find", err)
	if err != nil {
		return before, 0, err
	}
	for _, d := range found {
		before.Refs = append(before.Refs, d.Ref)
	}
	before.At = u.clock.Now()
	before.Funds, err = u.fundsBefore(ctx, p)
	return before, q.Cost, err
}

// fundsBefore is the balance before an order. While another one of the provider is
// on its way it is not used: what that one costs may be missing in it or not, and
// would be taken for the cost of this one.
func (u *Sessions) fundsBefore(ctx context.Context, p ports.Provider) (procurement.ProviderBalance, error) {
	busy := false
	err := u.store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		open, _, err := tx.Orders().Rivals(ctx, procurement.Order{Provider: p.Name()})
		busy = open > 0
		return err
	})
	if err != nil {
		busy = true // as far as anybody knows
	}
	funds, err := p.Balance(ctx)
	u.count(p, "balance", err)
	if busy {
		funds = procurement.ProviderBalance{}
	}
	return funds, err
}

// markSent stores that an order is about to be sent, and returns it as it is
// then; one that is still Planned is not to be sent, or not yet. Where orders
// cannot be told apart by a key, those that are alike take turns: then a new one
// in the provider's list has one possible cause. Who waits for too long is refused.
func (u *Sessions) markSent(ctx context.Context, p ports.Provider, o procurement.Order, before procurement.Snapshot, cost domain.Money) (procurement.Order, error) {
	planned, labelled := o, p.Capabilities().Labels(o.Intent.Type)
	err := u.mark(ctx, o, func(ctx context.Context, b books, _ session.Session, cur procurement.Order) error {
		o = planned
		if cur.Status != procurement.Planned {
			return nil // somebody else has sent it, or the session has ended
		}
		if !labelled {
			like, err := rivals(ctx, b.tx, cur)
			if err != nil {
				return err
			}
			if like > 0 && b.now.Sub(cur.PlannedAt) >= turnFor {
				return errNoTurn
			}
			if like > 0 {
				cur.Class, cur.NextAt = procurement.RateLimited, b.now.Add(waitTurn)
				return b.tx.Orders().Put(ctx, cur)
			}
		}
		cur.Class, cur.Cost = "", cost // until the provider says what it charged
		var err error
		if o, err = cur.Send(before, b.now); err != nil {
			return err
		}
		return b.tx.Orders().Put(ctx, o)
	})
	if errors.Is(err, errNoTurn) {
		return planned, u.refuse(ctx, planned, errNoTurn.Class, errNoTurn.Reason)
	}
	return o, err
}

// rivals counts the other orders whose outcome is open and that a seller's list
// could not tell from this one. A list of traffic tells no country.
func rivals(ctx context.Context, tx ports.Tx, o procurement.Order) (int, error) {
	if o.Intent.Type == session.Dynamic {
		o.Intent.Location = session.Location{}
	}
	_, like, err := tx.Orders().Rivals(ctx, o)
	return like, err
}

// mistakable counts the other orders whose outcome is open and that a listed one
// may be as well, by what the list tells of it.
func mistakable(ctx context.Context, tx ports.Tx, o procurement.Order, listed procurement.Delivery) (int, error) {
	if listed.SKU == "" {
		o.Intent.SKU = ""
	}
	if listed.Location.Country == "" {
		o.Intent.Location = session.Location{}
	}
	return rivals(ctx, tx, o)
}

// place makes the one call that buys, and stores what it proves.
func (u *Sessions) place(ctx context.Context, p ports.Provider, o procurement.Order) error {
	d, err := u.order(ctx, p, o)
	switch c := procurement.ClassOf(err); c {
	case "":
		return u.confirm(ctx, o, d)
	case procurement.Ambiguous:
		return u.doubt(ctx, o, procurement.ReasonOf(err))
	default:
		return u.refuse(ctx, o, c, procurement.ReasonOf(err))
	}
}

// repeatFor is how long after its first time an order is sent again where that is
// harmless. What is not there procurement.SettleFor after that will not come.
const repeatFor = 3 * time.Minute

// repeat sends an unknown order once more, under its own key. A refusal proves
// that this time nothing was bought, and not that nothing was the first time.
func (u *Sessions) repeat(ctx context.Context, p ports.Provider, o procurement.Order) error {
	d, err := u.order(ctx, p, o)
	if err == nil {
		return u.confirm(ctx, o, d)
	}
	return u.doubt(ctx, o, procurement.ReasonOf(err))
}

// order is the call itself.
func (u *Sessions) order(ctx context.Context, p ports.Provider, o procurement.Order) (procurement.Delivery, error) {
	ctx, cancel := call(ctx)
	defer cancel()
	d, err := p.Order(ctx, o.Intent)
	u.count(p, "order", err)
	return d, err
}

// ask resolves an unknown order by asking the provider. Only one that documents
// an idempotency key is sent the order again, under its own key, while somebody
// still wants it: then an answer tells the outcome, and a refusal only that of the
// repetition.
func (u *Sessions) ask(ctx context.Context, s session.Session, o procurement.Order) error {
	p, ok := u.catalog.provider(o.Provider)
	if !ok {
		return u.doubt(ctx, o, "the provider is not configured")
	}
	if o.Kind == procurement.Renewal {
		return u.askRenewal(ctx, p, s, o)
	}
	age, repeatable := u.clock.Now().Sub(o.SentAt), p.Capabilities().Idempotent
	if repeatable && s.Status == session.Creating && age < repeatFor {
		return u.repeat(ctx, p, o)
	}
	e, d, err := u.evidence(ctx, p, o)
	if err != nil {
		return u.doubt(ctx, o, procurement.ReasonOf(err))
	}
	var verdict procurement.Verdict
	err = u.change(ctx, o, func(ctx context.Context, b books, s session.Session, o procurement.Order) error {
		if verdict = procurement.Wait; o.Status != procurement.Unknown {
			return nil
		}
		like, err := rivals(ctx, b.tx, o)
		if err != nil {
			return err
		}
		e.Rivals = like > 0
		if e.Known, err = b.tx.Orders().Known(ctx, o.Provider, refsOf(e.Found)); err != nil {
			return err
		}
		if e.Spent, err = b.tx.Orders().Spent(ctx, o.Provider, o.Before.At); err != nil {
			return err
		}
		var found procurement.Delivery
		verdict, found = procurement.Decide(o, p.Capabilities().Labels(o.Intent.Type), e, b.now)
		if verdict == procurement.Adopt && found.Label == "" {
			others, err := mistakable(ctx, b.tx, o, found)
			if err != nil {
				return err
			}
			if others > 0 {
				verdict = procurement.Wait
			}
		}
		if verdict == procurement.Adopt && found.Ref == d.Ref {
			o, err := o.Confirm(d, b.now)
			if err != nil {
				return err
			}
			return u.taken(ctx, b, s, o, d)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case verdict == procurement.Absent && repeatable && age < repeatFor+procurement.SettleFor:
		return u.doubt(ctx, o, "") // the last repetition may be on its way
	case verdict == procurement.Absent:
		return u.refuse(ctx, o, procurement.Temporary, "the provider does not have it")
	case verdict == procurement.Wait:
		return u.doubt(ctx, o, "")
	}
	return nil
}

// evidence is what the provider tells about an unknown order, and its whole
// delivery, should it be found.
func (u *Sessions) evidence(ctx context.Context, p ports.Provider, o procurement.Order) (e procurement.Evidence, d procurement.Delivery, err error) {
	ctx, cancel := call(ctx)
	defer cancel()
	e.Found, err = p.Find(ctx, o.Intent)
	u.count(p, "find", err)
	if err != nil {
		return e, d, err
	}
	if !p.Capabilities().Labels(o.Intent.Type) {
		e.Funds, err = p.Balance(ctx)
		u.count(p, "balance", err)
		if err != nil {
			return e, d, err
		}
	}
	err = u.store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		e.Known, err = tx.Orders().Known(ctx, o.Provider, refsOf(e.Found))
		return err
	})
	if err != nil {
		return e, d, err
	}
	verdict, found := procurement.Decide(o, p.Capabilities().Labels(o.Intent.Type), e, u.clock.Now())
	if verdict != procurement.Adopt {
		return e, d, nil
	}
	d, err = p.Read(ctx, found.Ref)
	u.count(p, "read", err)
	return e, d, err
}

func refsOf(list []procurement.Delivery) []string {
	refs := make([]string, len(list))
	for i, d := range list {
		refs[i] = d.Ref
	}
	return refs
}

// count tells the metrics of a provider's call.
func (u *Sessions) count(p ports.Provider, operation string, err error) {
	if u.cfg.Count != nil {
		u.cfg.Count(p.Name(), operation, procurement.ClassOf(err))
	}
}
