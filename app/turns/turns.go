// Package turns decides when an order is sent that a provider's list could not
// distinguish from others like it: one after the other, in turns by party.
package turns

import (
	"context"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Repos is the repositories that a turn depends on.
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

// ErrWaitedTooLong refuses an order whose turn has not come.
var ErrWaitedTooLong = procurement.Refuse(procurement.RateLimited, "an order like it is undecided at the provider")

// Take returns the Rule of an order that has asked for nothing yet. Others are locked out until
// the unit ends.
func Take(ctx context.Context, tx Repos, o procurement.Order, now time.Time) (wait time.Duration, err error) {
	if wait, err = Free(ctx, tx, o, now); err != nil {
		return 0, err
	}
	line, err := tx.Orders().Waiting(ctx, alike(o), agentsAtMost)
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

// Free returns the Rule of an order whose turn has come: no order like it must be on its way.
func Free(ctx context.Context, tx Repos, o procurement.Order, now time.Time) (wait time.Duration, err error) {
	like, err := Rivals(ctx, tx, o)
	switch {
	case err != nil || like == 0:
		return 0, err
	case now.Sub(o.PlannedAt) >= waitLimit:
		return 0, ErrWaitedTooLong
	}
	return Retry, nil
}

// None returns the Rule at a provider that keeps order keys.
func None(context.Context, Repos, procurement.Order, time.Time) (time.Duration, error) { return 0, nil }

// Rivals counts the other orders whose outcome is open and that a provider's list could not
// distinguish from this one.
func Rivals(ctx context.Context, tx Repos, o procurement.Order) (int, error) {
	_, like, err := tx.Orders().Rivals(ctx, alike(o))
	return like, err
}

// alike returns an order with what a list shows of it: a list of traffic has no country.
func alike(o procurement.Order) procurement.Order {
	if o.Intent.Type == session.Dynamic {
		o.Intent.Location = session.Location{}
	}
	return o
}

// Mistakable counts the other orders whose outcome is open and that a listed one
// may be as well, by what the list has of it.
func Mistakable(ctx context.Context, tx Repos, o procurement.Order, listed procurement.Delivery) (int, error) {
	if listed.SKU == "" {
		o.Intent.SKU = ""
	}
	if listed.Location.Country == "" {
		o.Intent.Location = session.Location{}
	}
	return Rivals(ctx, tx, o)
}
