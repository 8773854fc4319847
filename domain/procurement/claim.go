package procurement

import (
	"time"

	"agentproxy/domain/session"
)

// Claim is the right of an order to one line of an operator's list. Lines that may serve
// several orders have a seat for each.
type Claim struct {
	Provider string
	Line     string // the list's key of it
	Seat     int    // from 0
	OrderID  string
	SKU      string // what the order asked for, so that the line can be replaced
	Location session.Location
	Exit     string    // the address that the line's traffic leaves from; empty if unknown
	EndsAt   time.Time // zero: with its order
	// Renewal is the key of the last renewal, which moved EndsAt.
	Renewal   string
	ClaimedAt time.Time
}
