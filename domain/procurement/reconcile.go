package procurement

// Match is the service's record of an entry in a provider's list.
type Match struct {
	// Order is the confirmed purchase with its ref, else the order with its label; the zero
	// Order if there is none.
	Order Order
	Over  bool // the session of Order has ended
	// Owned is set if a live session has an address of it.
	Owned bool
	// OpenOrder is set if the outcome of an order at the provider is open.
	OpenOrder bool
	// Cancels is set if the provider takes orders back.
	Cancels bool
}

// Disposition is what becomes of something that a provider lists.
type Disposition string

// Kept: the service uses it, or it runs to its end. Undecided: it may be an
// order that is on its way. Lost: it is an order whose outcome is unknown, which it
// decides. Surplus: it was bought for the service, which has given it up. Orphan: no
// order is known for it, so that it is left as it is.
const (
	Kept      Disposition = "kept"
	Undecided Disposition = "undecided"
	Lost      Disposition = "lost"
	Surplus   Disposition = "surplus"
	Orphan    Disposition = "orphan"
)

// Reconcile decides about one entry of a provider's list. What has no order is never
// given up: another installation, or a person, may have bought it from the same account.
func Reconcile(d Delivery, c Match) Disposition {
	o := c.Order
	switch {
	case d.State == Gone:
		return Kept
	case o.ID == "" && c.Owned:
		return Kept
	case o.ID == "" && d.Label == "" && (c.OpenOrder || d.State == Pending):
		return Undecided // what it is shows once it is delivered
	case o.ID == "" || o.Kind != Purchase:
		return Orphan
	case o.Status == Unknown:
		return Lost
	case o.Open():
		return Undecided
	case o.Status == Confirmed && o.Ref == d.Ref && (o.ClosedAt.IsZero() || !c.Over || !c.Cancels):
		return Kept
	}
	return Surplus
}
