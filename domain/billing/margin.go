package billing

import "agentproxy/domain"

// Margin is what agents paid for some sessions and what sellers took for them.
type Margin struct {
	Charged  domain.Money // what entries of type charge took
	Refunded domain.Money // what entries of type refund gave back
	Trial    domain.Money // the part of Charged less Refunded that trial credit paid
	Cost     domain.Money // of confirmed orders at sellers
	Orders   int          // at sellers, confirmed
	Unpriced int          // of these, whose cost the seller did not name
}

// Revenue returns what the ledger's account of that name has of it.
func (m Margin) Revenue() domain.Money { return m.Charged - m.Refunded }

// Paid returns what agents paid of their own money.
func (m Margin) Paid() domain.Money { return m.Revenue() - m.Trial }

// Margin returns what is left of what agents paid after the sellers.
func (m Margin) Margin() domain.Money { return m.Paid() - m.Cost }

// Plus adds two margins.
func (m Margin) Plus(o Margin) Margin {
	return Margin{Charged: m.Charged + o.Charged, Refunded: m.Refunded + o.Refunded, Trial: m.Trial + o.Trial,
		Cost: m.Cost + o.Cost, Orders: m.Orders + o.Orders, Unpriced: m.Unpriced + o.Unpriced}
}
