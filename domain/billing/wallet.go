package billing

import (
	"time"

	"agentproxy/domain"
)

// ErrInsufficientBalance says that the wallet cannot pay.
var ErrInsufficientBalance = &domain.Error{Kind: domain.PaymentRequired, Code: "INSUFFICIENT_BALANCE",
	Message: "the balance does not cover the cost; recharge and try again"}

// Wallet is the money of one agent and what its rules need to know.
type Wallet struct {
	AgentID   string
	Available Funds // spendable
	Held      Funds // by open purchases

	TrialExpiresAt time.Time // zero: no trial credit was granted
	TrialExpired   bool      // what was left of the credit has been written off
	Funded         bool      // a transfer was credited: no longer a trial

	Charged   domain.Money // ever
	Refunded  domain.Money // ever
	Recharged domain.Money // ever

	LiveSessions int // creating and active
	Budget       Budget
	SpentDay     time.Time // the UTC day that SpentToday belongs to
	SpentToday   domain.Money
}

// Balance is what can be spent.
func (w Wallet) Balance() domain.Money { return w.Available.Total() }

// IsTrial reports whether the account is still a trial at the time given.
func (w Wallet) IsTrial(now time.Time) bool {
	return !w.Funded && !w.TrialExpired && now.Before(w.TrialExpiresAt)
}

// trialOver reports whether trial credit that comes back is to be written off.
func (w Wallet) trialOver(now time.Time) bool {
	return w.TrialExpired || !w.TrialExpiresAt.IsZero() && !now.Before(w.TrialExpiresAt)
}

// GrantTrial is the entry that opens a wallet with trial credit.
func GrantTrial(x domain.Money) Entry {
	return Entry{Type: TrialGrant, Available: Funds{Trial: x}, Account: TrialGrants, Counter: -x,
		Description: "trial credit"}
}

// TopUp is the entry that credits USDT which arrived: the agent's own money.
func CreditRecharge(x domain.Money) Entry {
	return Entry{Type: Recharge, Available: Funds{Own: x}, Account: USDT, Counter: -x, Description: "USDT received"}
}

// Hold takes x out of what is available, trial credit first, and keeps it for a
// purchase. It refuses with ErrInsufficientBalance.
func (w Wallet) Hold(x domain.Money) (Entry, error) {
	if w.Balance() < x {
		return Entry{}, ErrInsufficientBalance.
			With("required", x).With("available", w.Balance()).With("currency", domain.Currency)
	}
	part := w.Available.trialFirst(x)
	return Entry{Type: HoldEntry, Available: part.Neg(), Held: part}, nil
}

// Charge takes x out of what a purchase holds, its trial part first. The
// spendable balance does not change: the money left it with the hold.
func Charge(held Funds, x domain.Money) Entry {
	return Entry{Type: ChargeEntry, Held: held.trialFirst(x).Neg(), Account: Revenue, Counter: x}
}

// GiveBack returns everything that a purchase still holds to where it came
// from. Trial credit that has expired meanwhile is written off in the same unit
// of work, by the second entry.
func (w Wallet) GiveBack(held Funds, now time.Time) []Entry {
	back := Entry{Type: Release, Available: held, Held: held.Neg()}
	return w.withWriteOff(back, now)
}

// Refund returns x of what was charged: own money first, because charges used
// up the trial part first. Expired trial credit is written off as in GiveBack.
func (w Wallet) Refund(charged Funds, x domain.Money, now time.Time) []Entry {
	back := Entry{Type: RefundEntry, Available: charged.ownFirst(x), Account: Revenue, Counter: -x}
	return w.withWriteOff(back, now)
}

func (w Wallet) withWriteOff(back Entry, now time.Time) []Entry {
	entries := []Entry{back}
	if back.Available.Trial > 0 && w.trialOver(now) {
		entries = append(entries, writeOff(back.Available.Trial))
	}
	return entries
}

// ExpireTrial writes off the trial credit that is neither spent nor held. It is
// false when there is none. The caller marks the wallet expired either way.
func (w Wallet) ExpireTrial() (Entry, bool) {
	if w.Available.Trial == 0 {
		return Entry{}, false
	}
	return writeOff(w.Available.Trial), true
}

func writeOff(x domain.Money) Entry {
	return Entry{Type: TrialExpiry, Available: Funds{Trial: -x}, Account: TrialExpired, Counter: x,
		Description: "unused trial credit expired"}
}

// Adjust books an operator's correction. A negative one takes own money first
// and refuses with ErrInsufficientBalance rather than go below zero.
func (w Wallet) Adjust(x domain.Money, reason string) (Entry, error) {
	e := Entry{Type: Adjustment, Available: Funds{Own: x}, Account: Corrections, Counter: -x, Description: reason}
	if x < 0 {
		if w.Balance() < -x {
			return Entry{}, ErrInsufficientBalance.
				With("required", -x).With("available", w.Balance()).With("currency", domain.Currency)
		}
		e.Available = w.Available.ownFirst(-x).Neg()
	}
	return e, nil
}
