package billing

import "agentproxy/domain"

// Margin is what agents paid for some sessions and what sellers took for them.
type Margin struct {
	Charged   domain.Money // what entries of type charge took
	Refunded  domain.Money // what entries of type refund gave back
	Trial     domain.Money // the part of Charged less Refunded that trial credit paid
	Given     domain.Money // by corrections, less what they took: no payment
	Cost      domain.Money // that sellers named, of confirmed orders
	Estimated domain.Money // what the configured cost makes of deliveries whose cost no seller named
	Orders    int          // at sellers, confirmed
	// Unpriced are orders, and UnpricedSessions sessions without an order, that have neither cost: what they
	// cost is unknown and not in the margin.
	Unpriced, UnpricedSessions int
	// Replaced are addresses in whose place others came, and Returned those whose unused days are in Refunded.
	Replaced, Returned int
}

// Revenue returns what the ledger's account of that name has of it.
func (m Margin) Revenue() domain.Money { return m.Charged - m.Refunded }

// Paid returns what was not paid by trial credit. What corrections gave is spent like own money, so it is in here.
func (m Margin) Paid() domain.Money { return m.Revenue() - m.Trial }

// Margin returns what is left of what agents paid after the sellers and without what corrections gave.
func (m Margin) Margin() domain.Money { return m.Paid() - m.Given - m.Cost - m.Estimated }

// Plus adds two margins.
func (m Margin) Plus(o Margin) Margin {
	return Margin{Charged: m.Charged + o.Charged, Refunded: m.Refunded + o.Refunded, Trial: m.Trial + o.Trial,
		Given: m.Given + o.Given, Cost: m.Cost + o.Cost, Estimated: m.Estimated + o.Estimated,
		Orders: m.Orders + o.Orders, Unpriced: m.Unpriced + o.Unpriced,
		UnpricedSessions: m.UnpricedSessions + o.UnpricedSessions, Replaced: m.Replaced + o.Replaced,
		Returned: m.Returned + o.Returned}
}
