package httpapi

import (
	"time"

	"agentproxy/domain"
)

// exampleTime and exampleLater are the times of examples: now, and the end of 30 days.
var (
	exampleTime  = time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
	exampleLater = exampleTime.Add(30 * 24 * time.Hour)
)

// The ids of examples, without their prefix and with it.
const (
	exampleID      = "aaaabbbbccccddddeeee"
	exampleAgent   = "agt_" + exampleID
	exampleSession = "sess_" + exampleID
)

// usd returns an amount of US dollars. It panics if the text is none.
func usd(text string) money { return money(domain.MustMoney(text)) }
