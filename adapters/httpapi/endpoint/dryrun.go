package endpoint

import (
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/ledger"
	"agentproxy/domain"
)

// DryRun is what a call would cost and leave.
type DryRun struct {
	DryRun       bool        `json:"dry_run" enum:"true"`
	Cost         value.Money `json:"cost"`
	Currency     string      `json:"currency" enum:"USD"`
	BalanceAfter value.Money `json:"balance_after"`
}

// ToDryRun returns the reply that shows a quote.
func ToDryRun(q *ledger.Quote) DryRun {
	return DryRun{true, value.Money(q.Cost), domain.Currency, value.Money(q.BalanceAfter)}
}

// ExampleDryRun is the dry run that the document shows.
var ExampleDryRun = DryRun{true, value.Money(domain.MustMoney("0.25")), domain.Currency,
	value.Money(domain.MustMoney("9.75"))}
