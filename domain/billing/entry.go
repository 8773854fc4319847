// Package billing holds the rules of money: prices, the double-entry ledger,
// the wallet that it moves, and the agent's own spending guard.
package billing

import (
	"time"

	"agentproxy/domain"
)

// Split is an amount by origin: trial credit, or the agent's own money.
type Funds struct {
	Trial domain.Money
	Own   domain.Money
}

// Total is both parts together.
func (s Funds) Total() domain.Money { return s.Trial + s.Own }

// Add returns s + o, part by part.
func (s Funds) Add(o Funds) Funds { return Funds{s.Trial + o.Trial, s.Own + o.Own} }

// Neg returns -s.
func (s Funds) Neg() Funds { return Funds{-s.Trial, -s.Own} }

// trialFirst takes x out of s, trial credit first. The caller has checked that
// s holds x.
func (s Funds) trialFirst(x domain.Money) Funds {
	trial := min(s.Trial, x)
	return Funds{Trial: trial, Own: x - trial}
}

// ownFirst takes x out of s, own money first: the way back of trialFirst.
func (s Funds) ownFirst(x domain.Money) Funds {
	own := min(s.Own, x)
	return Funds{Trial: x - own, Own: own}
}

// IDPrefix begins the id of every entry.
const IDPrefix = "txn_"

// Type says what a ledger entry is for.
type Type string

// The types of entries, as agents see them in the list of transactions.
const (
	TrialGrant  Type = "trial_grant"
	Recharge    Type = "recharge"
	HoldEntry   Type = "hold"
	ChargeEntry Type = "charge"
	Release     Type = "release"
	RefundEntry Type = "refund"
	TrialExpiry Type = "trial_expiry"
	Adjustment  Type = "adjustment"
)

// Types lists every type of entry.
var Types = []Type{TrialGrant, Recharge, HoldEntry, ChargeEntry, Release, RefundEntry, TrialExpiry, Adjustment}

// Account is the service's side of an entry.
type Account string

// The accounts of the service. An entry within one wallet (hold, release)
// touches none of them.
const (
	NoAccount    Account = ""
	Revenue      Account = "revenue"
	TrialGrants  Account = "trial_grants"
	TrialExpired Account = "trial_expired"
	USDT         Account = "usdt_clearing"
	Corrections  Account = "corrections"
)

// Entry is one balanced movement. The agent's side is the signed change of what
// is available and of what is held; Counter is the signed change of Account.
// The three sum to zero. Entries are never edited.
type Entry struct {
	ID          string
	AgentID     string
	Type        Type
	Available   Funds
	Held        Funds
	Account     Account
	Counter     domain.Money
	Ref         string // unique for ever: what this entry is the booking of
	SessionID   string
	OrderID     string
	Description string
	At          time.Time

	BalanceAfter domain.Money // the spendable balance after it; set by the store
}

// Amount is the signed change of the spendable balance.
func (e Entry) Amount() domain.Money { return e.Available.Total() }

// Charged is how much of the held money an entry of type charge took.
func (e Entry) Charged() domain.Money {
	if e.Type != ChargeEntry {
		return 0
	}
	return e.Counter
}

// LowBalance is the balance below which agents are told to recharge.
const LowBalance = domain.Dollar

// CrossesLow reports whether a booked entry brought the balance below LowBalance.
func (e Entry) CrossesLow() bool {
	return e.BalanceAfter < LowBalance && e.BalanceAfter-e.Amount() >= LowBalance
}
