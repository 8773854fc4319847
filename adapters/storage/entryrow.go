package storage

import (
	"agentproxy/adapters/storage/column"
	"agentproxy/domain"
	"agentproxy/domain/billing"
)

// entryRow is a row of ledger_entries.
type entryRow struct {
	ID           string
	AgentID      string
	Ord          int64
	Type         billing.Type
	Trial        domain.Money
	Own          domain.Money
	HeldTrial    domain.Money
	HeldOwn      domain.Money
	Account      billing.Account
	Counter      domain.Money
	Ref          string
	SessionID    string
	OrderID      string
	Description  string
	At           int64
	BalanceAfter domain.Money
}

func (entryRow) TableName() string { return "ledger_entries" }

func toEntryRow(e billing.Entry, ord int64) entryRow {
	return entryRow{ID: e.ID, AgentID: e.AgentID, Ord: ord, Type: e.Type, Trial: e.Available.Trial, Own: e.Available.Own,
		HeldTrial: e.Held.Trial, HeldOwn: e.Held.Own, Account: e.Account, Counter: e.Counter, Ref: e.Ref,
		SessionID: e.SessionID, OrderID: e.OrderID, Description: e.Description, At: column.Micros(e.At),
		BalanceAfter: e.BalanceAfter}
}

func fromEntryRow(r entryRow) billing.Entry {
	return billing.Entry{ID: r.ID, AgentID: r.AgentID, Type: r.Type, Available: billing.Funds{Trial: r.Trial, Own: r.Own},
		Held: billing.Funds{Trial: r.HeldTrial, Own: r.HeldOwn}, Account: r.Account, Counter: r.Counter, Ref: r.Ref,
		SessionID: r.SessionID, OrderID: r.OrderID, Description: r.Description, At: column.Time(r.At),
		BalanceAfter: r.BalanceAfter}
}
