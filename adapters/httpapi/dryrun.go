package httpapi

import (
	"agentproxy/app/ledger"
	"agentproxy/domain"
)

// dryRunReply is what a call would cost and leave.
type dryRunReply struct {
	DryRun       bool   `json:"dry_run" enum:"true"`
	Cost         money  `json:"cost"`
	Currency     string `json:"currency" enum:"USD"`
	BalanceAfter money  `json:"balance_after"`
}

func toQuote(q *ledger.Quote) dryRunReply {
	return dryRunReply{true, money(q.Cost), domain.Currency, money(q.BalanceAfter)}
}

var exampleDryRun = dryRunReply{true, money(domain.MustMoney("0.25")), domain.Currency, money(domain.MustMoney("9.75"))}
