// Package billing holds the rules of money: prices, the double-entry ledger,
// the wallet that it moves, and the agent's own spending guard.
package billing

import (
	"time"

	"agentproxy/domain"
)

// Funds is an amount by origin: trial credit or the agent's own money.
type Funds struct {
	Trial domain.Money
	Own   domain.Money
}

// Total returns the sum of both parts.
func (f Funds) Total() domain.Money { return f.Trial + f.Own }

// Add returns s + o, part by part.
func (f Funds) Add(o Funds) Funds { return Funds{f.Trial + o.Trial, f.Own + o.Own} }

// Neg returns -s.
func (f Funds) Neg() Funds { return Funds{-f.Trial, -f.Own} }

// trialFirst returns the part of s that a payment of x takes, trial credit
// first. s must hold at least x.
func (f Funds) trialFirst(x domain.Money) Funds {
	trial := min(f.Trial, x)
	return Funds{Trial: trial, Own: x - trial}
}

// ownFirst returns the part of s that a payment of x takes, own money first; it
// reverses trialFirst.
func (f Funds) ownFirst(x domain.Money) Funds {
	own := min(f.Own, x)
	return Funds{Trial: x - own, Own: own}
}

// IDPrefix begins the id of every entry.
const IDPrefix = "txn_"

// Type is the purpose of a ledger entry.
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

// Entry is one balanced movement. The agent's side is the signed change of the
// available and of the held funds; Counter is the signed change of Account. The
// three sum to zero. Entries are never changed.
type Entry struct {
	ID          string
	AgentID     string
	Type        Type
	Available   Funds
	Held        Funds
	Account     Account
	Counter     domain.Money
	Ref         string // unique forever; identifies what the entry books
	SessionID   string
	OrderID     string
	Description string
	At          time.Time

	BalanceAfter domain.Money // the spendable balance after it; set by the store
}

// Amount returns the signed change of the spendable balance.
func (e Entry) Amount() domain.Money { return e.Available.Total() }

// Charged returns what an entry of type charge took of the held money, 0 for other types.
func (e Entry) Charged() domain.Money { return e.ofType(ChargeEntry, e.Counter) }

// Refunded returns what an entry of type refund gave back, 0 for other types.
func (e Entry) Refunded() domain.Money { return e.ofType(RefundEntry, e.Amount()) }

// Recharged returns what an entry of type recharge credited, 0 for other types.
func (e Entry) Recharged() domain.Money { return e.ofType(Recharge, e.Amount()) }

// Adjusted returns the own money that a positive adjustment credited, 0 for other entries.
func (e Entry) Adjusted() domain.Money { return e.ofType(Adjustment, max(0, e.Available.Own)) }

func (e Entry) ofType(t Type, x domain.Money) domain.Money {
	if e.Type != t {
		return 0
	}
	return x
}

// Posting is an entry and what else moves with it in the wallet.
type Posting struct {
	Entry Entry
	Spent domain.Money // added to what was spent on SpentDay; negative gives back
	Day   time.Time    // the UTC day of Spent
	Live  int          // added to the count of live sessions
	Hour  time.Time    // in which the entry is summed; zero for that of the entry
	Key   string       // id of the key that bought the session; empty if none is known
}

// LowBalance is the balance below which agents are notified to recharge.
const LowBalance = domain.Dollar

// CrossesLow reports whether a booked entry brought the balance below LowBalance.
func (e Entry) CrossesLow() bool {
	return e.BalanceAfter < LowBalance && e.BalanceAfter-e.Amount() >= LowBalance
}
