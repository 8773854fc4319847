package procurement

import "time"

// The times of an order that its provider does not show.
const (
	// LostAfter is how long an order must be missing to be lost. Live orders are read
	// once an hour, so that within it every other order of the provider is read too, and
	// a fault of the provider shows in several.
	LostAfter = 2 * time.Hour
	// RereadAfter is when a missing order is read again.
	RereadAfter = 10 * time.Minute
)

// Owed counts the orders that a provider owes: confirmed ones that are not given up.
type Owed struct {
	Live    int // all of them
	Missing int // those that the provider did not show when it was last read
	Late    int // those that were reported as late: not delivered, or not settled
}

// The bounds of what may be missing at a provider without a fault of the provider.
const (
	missingAtMost = 5
	missingShare  = 10 // a tenth
)

// SellersFault reports whether the number of orders that are missing at once shows that
// the provider's list is at fault and not the orders: more than one and more than a tenth of all,
// or more than five. Sellers take back single orders; an empty or a cut list hides many,
// and what is ended for it cannot be revived, though it is still paid for there.
func (o Owed) SellersFault() bool {
	return o.Missing > missingAtMost || o.Missing > 1 && o.Missing*missingShare > o.Live
}

// RecordMissing records that the provider does not show a live order, and when it is read again.
func (o Order) RecordMissing(now time.Time) Order {
	if o.LostAt.IsZero() {
		o.LostAt = now
	}
	o.NextAt = now.Add(RereadAfter)
	return o
}

// MayBeLost returns ErrDecided unless the operator may decide that the provider does not
// have the order: it is a purchase that was accepted and not delivered for a day, or that
// the provider did not show when it was last read.
func (o Order) MayBeLost() error {
	undelivered := o.State == Pending && !o.FrozenAt.IsZero()
	switch {
	case o.Kind != Purchase || o.Status != Confirmed:
		return ErrDecided.Msgf("the %s is %s; only a confirmed purchase can be lost", o.Kind, o.Status)
	case !o.ClosedAt.IsZero() || o.State == Gone:
		return ErrDecided.Msgf("the order is closed")
	case !undelivered && o.LostAt.IsZero():
		return ErrDecided.Msgf("the provider showed the order when it was last read")
	}
	return nil
}

// Lost reports whether a missing order has ended at its provider, which owes w.
func (o Order) Lost(w Owed, now time.Time) bool {
	return !o.LostAt.IsZero() && now.Sub(o.LostAt) >= LostAfter && !w.SellersFault()
}
