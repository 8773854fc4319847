package recharge

import (
	"time"

	"agentproxy/domain"
)

// Aside is a final transfer that could not be booked. It is tried again, and delays no other one.
type Aside struct {
	Key
	AgentID string
	Amount  domain.Money
	Block   int64
	Reason  string // of the last failure
	SetAt   time.Time
	TriedAt time.Time
	Tries   int
}

// MaxReason bounds the reason of a transfer that is set aside, in bytes.
const MaxReason = 500
