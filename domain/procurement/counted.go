package procurement

import "agentproxy/domain"

// Counted is what a seller has counted of the live sessions of a product, and what the
// service has charged for them, both since they began.
type Counted struct {
	Product  string
	Sessions int
	Seller   int64 // bytes
	Charged  int64 // bytes
}

// The thresholds of Differs. Below them are what is on its way, and what sellers round or
// count of a connection besides its payload.
const (
	leastDifference = 100_000_000 // bytes
	mostPercent     = 10          // of what was charged
)

// Uncharged returns the bytes that the seller counted and no agent is charged for.
func (c Counted) Uncharged() int64 { return max(c.Seller-c.Charged, 0) }

// Differs reports whether the seller has counted so much more that an agent may be using
// traffic that it is not charged for.
func (c Counted) Differs() bool {
	return c.Uncharged() > leastDifference && c.Uncharged() > domain.MulDiv(c.Charged, mostPercent, 100)
}
