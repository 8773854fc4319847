// Package fairqueue decides when an order is sent that a provider's list could not
// distinguish from others like it: one at a time, round-robin over the parties that wait.
package fairqueue

import (
	"context"
	"time"

	"agentproxy/domain/account"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Repos is the repositories that a Rule reads.
type Repos interface {
	Orders() ports.Orders
}

// Rule returns 0 if a planned order may be sent now, else when it is to look again, or
// ErrWaitedTooLong.
type Rule func(ctx context.Context, tx Repos, o procurement.Order, now time.Time) (wait time.Duration, err error)

// An order waits for others like it and looks again after Retry, later the more are before
// it. One that has waited longer than waitLimit is refused as RateLimited. That is longer
// than a provider takes to show what it made: an order still undecided after it is left to
// the operator.
const (
	Retry     = time.Second
	perOrder  = 500 * time.Millisecond // that is before it; few providers take less
	mostRetry = 20 * time.Second
	waitLimit = 20 * time.Minute
	// agentsAtMost bounds the agents that are compared.
	agentsAtMost = 512
)

// ErrWaitedTooLong refuses an order that was not sent within waitLimit.
var ErrWaitedTooLong = procurement.Refuse(procurement.RateLimited, "an order like it is undecided at the provider")

// Queued returns the Rule of an order for which nothing was requested yet: it waits until it is the first of
// the queue, in which accounts that are funded come first. It locks the provider until the unit ends.
func Queued(funding account.Funding) Rule {
	return func(ctx context.Context, tx Repos, o procurement.Order, now time.Time) (wait time.Duration, err error) {
		if wait, err = Exclusive(ctx, tx, o, now); err != nil {
			return 0, err
		}
		line, err := tx.Orders().Waiting(ctx, alike(o), funding, agentsAtMost)
		if err != nil {
			return 0, err
		}
		place := procurement.Place(line, o.ID, now)
		switch {
		case wait == 0 && place == 0:
			return 0, nil
		case now.Sub(o.PlannedAt) >= waitLimit:
			return 0, ErrWaitedTooLong
		}
		return min(Retry+time.Duration(place)*perOrder, mostRetry), nil
	}
}

// Exclusive is the Rule of the first order of the queue: it waits until no order like it is open.
func Exclusive(ctx context.Context, tx Repos, o procurement.Order, now time.Time) (wait time.Duration, err error) {
	like, err := CountAlike(ctx, tx, o)
	switch {
	case err != nil || like == 0:
		return 0, err
	case now.Sub(o.PlannedAt) >= waitLimit:
		return 0, ErrWaitedTooLong
	}
	return Retry, nil
}

// None is the Rule at a provider that keeps order keys: nothing waits.
func None(context.Context, Repos, procurement.Order, time.Time) (time.Duration, error) { return 0, nil }

// CountAlike counts the other orders whose outcome is open and that a provider's list could not
// distinguish from this one.
func CountAlike(ctx context.Context, tx Repos, o procurement.Order) (int, error) {
	_, like, err := tx.Orders().CountOpen(ctx, alike(o))
	return like, err
}

// alike returns an order with what a list shows of it: a list of traffic has no country.
func alike(o procurement.Order) procurement.Order {
	if o.Intent.Type == session.Dynamic {
		o.Intent.Location = session.Location{}
	}
	return o
}

// CountMistakable counts the other orders whose outcome is open and that a listed one
// may be as well, by what the list has of it.
func CountMistakable(ctx context.Context, tx Repos, o procurement.Order, listed procurement.Delivery) (int, error) {
	if listed.SKU == "" {
		o.Intent.SKU = ""
	}
	if listed.Location.Country == "" {
		o.Intent.Location = session.Location{}
	}
	return CountAlike(ctx, tx, o)
}
