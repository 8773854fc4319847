package openapi

import (
	"time"

	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain"
)

// ExampleTime and ExampleLater are the times of examples: now, and the end of 30 days.
var (
	ExampleTime  = time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
	ExampleLater = ExampleTime.Add(30 * 24 * time.Hour)
)

// The ids of examples, without their prefix and with it.
const (
	ExampleID      = "aaaabbbbcccc"
	ExampleAgent   = "agt_" + ExampleID
	ExampleSession = "sess_" + ExampleID
)

// USD returns an amount of US dollars. It panics if the text is none.
func USD(text string) value.Money { return value.Money(domain.MustMoney(text)) }
