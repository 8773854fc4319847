package endpoint

import (
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/ledger"
	"agentproxy/domain"
)

// DryRun is what a call would cost and leave.
type DryRun struct {
	DryRun       bool         `json:"dry_run" enum:"true" doc:"Always true."`
	Cost         value.Money  `json:"cost" doc:"What the call would cost, in US dollars."`
	Currency     string       `json:"currency" enum:"USD" doc:"Of all amounts."`
	BalanceAfter value.Money  `json:"balance_after" doc:"The balance that the call would leave."`
	Refunded     *value.Money `json:"refunded,omitempty" doc:"What ending a session would return."`
	Forfeited    *value.Money `json:"forfeited,omitempty" doc:"What ending a session would give up of what was paid."`
}

// ToDryRun returns the reply that shows a quote.
func ToDryRun(q *ledger.Quote) DryRun {
	return DryRun{DryRun: true, Cost: value.Money(q.Cost), Currency: domain.Currency,
		BalanceAfter: value.Money(q.BalanceAfter)}
}

// ExampleDryRun is the dry run that the document shows.
var ExampleDryRun = DryRun{DryRun: true, Cost: value.Money(domain.MustMoney("0.25")), Currency: domain.Currency,
	BalanceAfter: value.Money(domain.MustMoney("9.75"))}
