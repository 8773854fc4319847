package procurement

import (
	"net/netip"
	"slices"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/session"
)

// Status is how much is known about an order.
type Status string

// planned → sent → confirmed | refused | unknown; unknown → confirmed | refused.
// Planned is stored with the hold, before a byte leaves. Sent is stored before
// the one call that may spend money. Confirmed and refused never change again.
const (
	Planned   Status = "planned"
	Sent      Status = "sent"
	Confirmed Status = "confirmed"
	Refused   Status = "refused"
	Unknown   Status = "unknown"
)

// Statuses lists every status.
var Statuses = []Status{Planned, Sent, Confirmed, Refused, Unknown}

// Kind is the purpose of an order.
type Kind string

// A purchase begins a session, a renewal extends a static one, and an exchange replaces an address of it.
const (
	Purchase Kind = "purchase"
	Renewal  Kind = "renewal"
	Exchange Kind = "replacement" // behind the others in the order of their names: an order is found by its ref
)

// Refusals about orders, for the operator.
var (
	ErrOrderNotFound = &domain.Error{Kind: domain.NotFound, Code: "ORDER_UNKNOWN",
		Message: "no upstream order has this id"}
	ErrDecided = &domain.Error{Kind: domain.Conflict, Code: "ORDER_DECIDED", Message: "the outcome of this upstream " +
		"order is known"}
)

// Order is what was, or may have been, bought of a provider for a session.
type Order struct {
	ID        string // ord_…: the Key of its Intent
	Kind      Kind
	SessionID string
	Provider  string
	Intent    Intent // without Taken
	Status    Status

	// Before is what the provider listed just before the order was sent.
	Before Snapshot
	Ref    string // the provider's id, once it is known
	State  State  // of a confirmed order
	// SealedDelivery is the Delivery of a confirmed order, encrypted.
	SealedDelivery []byte
	Counter        Counter      // of a direct session
	Cost           domain.Money // what the provider charged, or was to charge
	Class          Class        // of a refused or unknown one
	Reason         string       // in the provider's words

	PlannedAt time.Time
	SentAt    time.Time
	DecidedAt time.Time // confirmed or refused
	NextAt    time.Time // when the provider is asked about it; zero: never again
	FrozenAt  time.Time // unknown, undelivered or unsettled for too long: reported as such
	LostAt    time.Time // first time that a live order was not found
	CutAt     time.Time // the access of an ended direct session was stopped there
	ClosedAt  time.Time // given up at the provider, or left to its end there
	ExpiresAt time.Time // the provider's own end
}

// The times of an order.
const (
	// SendTimeout is how long the one call may take that spends money; an order that is
	// sent for longer belongs to a process that died.
	SendTimeout = 150 * time.Second
	// ListingDelay is how long an order may be on its way into the provider's lists,
	// from the moment it is sent: the provider may execute it at the end of the call,
	// and list it two minutes later.
	ListingDelay = SendTimeout + 2*time.Minute
	// FreezeAfter is the age at which polling for an unknown order ends.
	FreezeAfter = 24 * time.Hour
)

// Open reports whether the outcome of the order is still to come.
func (o Order) Open() bool { return o.Status == Planned || o.Status == Sent || o.Status == Unknown }

// Undelivered reports whether the order may still be delivered: its outcome is to
// come, or it was accepted and the provider has not delivered it.
func (o Order) Undelivered() bool {
	return o.Open() && o.Kind != Exchange || o.Kind == Purchase && o.Status == Confirmed && o.State == Pending
}

// Closable reports whether the order is a confirmed purchase that is not closed at its
// provider.
func (o Order) Closable() bool {
	return o.Kind == Purchase && o.Status == Confirmed && o.ClosedAt.IsZero()
}

// Excess returns what a provider charged for a confirmed order above the most that it
// was to cost, or 0.
func (o Order) Excess() domain.Money {
	if o.Status != Confirmed || o.Intent.MaxCost == 0 {
		return 0
	}
	return max(0, o.Cost-o.Intent.MaxCost)
}

// Send marks the order as sent. Decide compares before with what the provider
// lists later.
func (o Order) Send(before Snapshot, now time.Time) (Order, error) {
	if o.Status != Planned {
		return o, ErrDecided.Msgf("the order is %s", o.Status)
	}
	o.Status, o.Before, o.SentAt, o.NextAt = Sent, before, now, now.Add(SendTimeout)
	return o, nil
}

// Confirm records what the provider delivers for the order.
func (o Order) Confirm(d Delivery, now time.Time) (Order, error) {
	if o.Status != Sent && o.Status != Unknown {
		return o, ErrDecided.Msgf("the order is %s", o.Status)
	}
	o.Status, o.DecidedAt, o.Class, o.Reason, o.NextAt, o.FrozenAt = Confirmed, now, "", "", time.Time{}, time.Time{}
	return o.Record(d, now), nil
}

// Record stores the progress of a confirmed order and when to ask the provider
// again.
func (o Order) Record(d Delivery, now time.Time) Order {
	if o.Ref == "" {
		o.Ref = d.Ref
	}
	if d.Cost > 0 {
		o.Cost = d.Cost
	}
	if !d.ExpiresAt.IsZero() {
		o.ExpiresAt = d.ExpiresAt
	}
	o.State = d.State
	if d.State == Pending {
		o.NextAt = now.Add(Backoff(now.Sub(o.SentAt)))
	}
	return o
}

// Refuse records that provably nothing was bought.
func (o Order) Refuse(why Class, reason string, now time.Time) (Order, error) {
	if !o.Open() {
		return o, ErrDecided.Msgf("the order is %s", o.Status)
	}
	o.Status, o.Class, o.Reason, o.DecidedAt, o.NextAt, o.FrozenAt = Refused, why, reason, now, time.Time{}, time.Time{}
	return o, nil
}

// MarkUnknown records that the outcome is unknown and when to ask the provider.
// After FreezeAfter the order is frozen.
func (o Order) MarkUnknown(reason string, now time.Time) (Order, error) {
	if o.Status != Sent && o.Status != Unknown {
		return o, ErrDecided.Msgf("the order is %s", o.Status)
	}
	o.Status, o.Class = Unknown, Ambiguous
	if reason != "" {
		o.Reason = reason
	}
	age := now.Sub(o.SentAt)
	if age >= FreezeAfter {
		o.NextAt = time.Time{}
		if o.FrozenAt.IsZero() {
			o.FrozenAt = now
		}
		return o, nil
	}
	o.NextAt = now.Add(Backoff(age))
	return o, nil
}

// Backoff returns the delay before a provider is asked again about something of
// an age: a quarter of the age, from two seconds to ten minutes.
func Backoff(age time.Duration) time.Duration {
	return min(max(age/4, 2*time.Second), 10*time.Minute)
}

// Snapshot is what a provider listed, and had of our money, at one moment.
type Snapshot struct {
	Refs  []string                 // of a purchase: the orders in its list
	Ends  map[netip.Addr]time.Time // of a renewal: when each address ends, to the second
	Funds ProviderBalance
	At    time.Time // just before Funds were read
}

// Evidence is what a provider reports about an unknown order.
type Evidence struct {
	Found []Delivery      // what may be the order
	Known map[string]bool // refs that belong to other orders of the service
	Funds ProviderBalance
	// Spent is the cost there of other orders of the service since Before.At, read before
	// Funds: an order that is charged in between would hide as much missing money otherwise.
	// OthersUnknown is set if similar orders are unknown too.
	Spent         domain.Money
	OthersUnknown bool
}

// Verdict is what the evidence proves.
type Verdict string

// Adopt: the order was made. Absent: it was not. Wait: neither is proven.
const (
	Adopt  Verdict = "adopt"
	Absent Verdict = "absent"
	Wait   Verdict = "wait"
)

// Decide weighs the evidence about an unknown order. A delivery with the
// order's key is the order. Without keys it is the one that is new, belongs to
// no other order and matches; if a similar order is unknown too, or several are
// new, the outcome stays open. Absent requires that ListingDelay is over and,
// if the provider reports its balance, that no money is missing.
func Decide(o Order, labelled bool, e Evidence, now time.Time) (Verdict, Delivery) {
	var fresh []Delivery
	for _, d := range e.Found {
		if d.Label != "" && d.Label == o.ID {
			return Adopt, d
		}
		if labelled || d.Label != "" {
			continue
		}
		if !slices.Contains(o.Before.Refs, d.Ref) && !e.Known[d.Ref] && o.matches(d) {
			fresh = append(fresh, d)
		}
	}
	switch {
	case len(fresh) == 1 && !e.OthersUnknown:
		return Adopt, fresh[0]
	case len(fresh) > 0, now.Sub(o.SentAt) < ListingDelay:
		return Wait, Delivery{}
	case !labelled && o.missesMoney(e):
		return Wait, Delivery{} // money is missing
	}
	return Absent, Delivery{}
}

// matches reports whether a listed order may be this one, as far as the list
// describes it.
func (o Order) matches(d Delivery) bool {
	in := o.Intent
	return (d.SKU == "" || in.SKU == "" || d.SKU == in.SKU) &&
		(d.Quantity == 0 || in.Type != session.Static || d.Quantity == in.Quantity) &&
		(d.Location.Country == "" || in.Location.Country == "" || d.Location.Country == in.Location.Country) &&
		d.State != Gone
}
