package billing

import (
	"time"

	"agentproxy/domain"
)

// ErrInsufficientBalance is returned if the balance does not cover a cost.
var ErrInsufficientBalance = &domain.Error{Kind: domain.PaymentRequired, Code: "INSUFFICIENT_BALANCE",
	Message: "the balance does not cover the cost; recharge and try again"}

// Wallet is the money of one agent and the state of its spending rules.
type Wallet struct {
	AgentID   string
	Available Funds // spendable
	Held      Funds // by open purchases

	TrialExpiresAt time.Time // zero if no trial credit was granted
	TrialExpired   bool      // the rest of the credit has been written off
	Funded         bool      // a transfer was credited, which ends the trial

	Charged   domain.Money // ever
	Refunded  domain.Money // ever
	Recharged domain.Money // ever
	Adjusted  domain.Money // own money that adjustments credited, ever; what they took lowers it not

	LiveSessions int // creating and active
	Budget       Budget
	SpentDay     time.Time // the UTC day that SpentToday belongs to
	SpentToday   domain.Money

	RestrictedKeys int // keys of the agent whose money is kept by itself, as a KeyWallet
}

// Balance returns the spendable amount.
func (w Wallet) Balance() domain.Money { return w.Available.Total() }

// Credited returns the own money that was ever credited: what is spent, refunded or taken back changes it not.
func (w Wallet) Credited() domain.Money { return w.Recharged + w.Adjusted }

// Insufficient returns ErrInsufficientBalance with what is required and what the wallet has.
func (w Wallet) Insufficient(required domain.Money) error {
	return ErrInsufficientBalance.
		With("required", required).With("available", w.Balance()).With("currency", domain.Currency)
}

// IsTrial reports whether the account is a trial at now.
func (w Wallet) IsTrial(now time.Time) bool {
	return !w.Funded && !w.TrialExpired && now.Before(w.TrialExpiresAt)
}

// trialOver reports whether trial credit that is returned must be written off.
func (w Wallet) trialOver(now time.Time) bool {
	return w.TrialExpired || !w.TrialExpiresAt.IsZero() && !now.Before(w.TrialExpiresAt)
}

// GrantTrial returns the entry that opens a wallet with trial credit.
func GrantTrial(x domain.Money) Entry {
	return Entry{Type: TrialGrant, Available: Funds{Trial: x}, Account: TrialGrants, Counter: -x,
		Description: "trial credit"}
}

// CreditRecharge returns the entry that credits received USDT as the agent's
// own money.
func CreditRecharge(x domain.Money) Entry {
	return Entry{Type: Recharge, Available: Funds{Own: x}, Account: USDT, Counter: -x, Description: "USDT received"}
}

// FundingSource is what may pay for a purchase.
type FundingSource bool

// Trial credit pays for what costs the operator nothing but its own addresses.
const (
	AnyFunds FundingSource = false
	OwnMoney FundingSource = true // trial credit does not pay
)

// Hold returns the entry that moves x from the available balance to a
// purchase's hold, trial credit first. The trial part is 0 if own money alone may
// pay, whatever else the wallet has. It returns ErrInsufficientBalance if the
// means are less than x.
func (w Wallet) Hold(x domain.Money, by FundingSource) (Entry, error) {
	if by == OwnMoney && w.Available.Own < x {
		return Entry{}, ErrInsufficientBalance.
			Msgf("trial credit does not pay for this product, and your own money does not cover the cost; recharge "+
				"and try again").
			With("required", x).With("available", w.Available.Own).With("currency", domain.Currency).With("trial_credit", false)
	}
	if w.Balance() < x {
		return Entry{}, w.Insufficient(x)
	}
	part := w.Available.trialFirst(x)
	if by == OwnMoney {
		part = Funds{Own: x}
	}
	return Entry{Type: HoldEntry, Available: part.Neg(), Held: part}, nil
}

// Charge returns the entry that takes x out of a purchase's hold, trial credit
// first. The spendable balance does not change: the hold reduced it.
func Charge(held Funds, x domain.Money) Entry {
	return Entry{Type: ChargeEntry, Held: held.trialFirst(x).Neg(), Account: Revenue, Counter: x}
}

// Release returns the entries that release everything a purchase still holds.
// Trial credit that has expired meanwhile is written off by the second entry,
// in the same transaction.
func (w Wallet) Release(held Funds, now time.Time) []Entry {
	back := Entry{Type: Release, Available: held, Held: held.Neg()}
	return w.withWriteOff(back, now)
}

// Refund returns the entries that refund x of what was charged, own money first
// because charges took the trial credit first. Expired trial credit is written
// off as in Release.
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

// ExpireTrial returns the entry that writes off the trial credit that is
// neither spent nor held, or false if there is none. The caller marks the
// wallet as expired in both cases.
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

// Adjust returns the entry of an operator's correction. A negative one takes
// own money first; it returns ErrInsufficientBalance if the balance would
// become negative.
func (w Wallet) Adjust(x domain.Money, reason string) (Entry, error) {
	e := Entry{Type: Adjustment, Available: Funds{Own: x}, Account: Corrections, Counter: -x, Description: reason}
	if x < 0 {
		if w.Balance() < -x {
			return Entry{}, w.Insufficient(-x)
		}
		e.Available = w.Available.ownFirst(-x).Neg()
	}
	return e, nil
}

// Apply returns the wallet after a posting. It returns ErrInsufficientBalance if a part of the wallet
// would become negative. It is the rule by which the store moves a wallet.
func (w Wallet) Apply(p Posting) (Wallet, error) {
	after, e := w, p.Entry
	after.Available, after.Held = w.Available.Add(e.Available), w.Held.Add(e.Held)
	if min(after.Available.Trial, after.Available.Own, after.Held.Trial, after.Held.Own) < 0 {
		return w, w.Insufficient(-e.Amount())
	}
	after.Charged += e.Charged()
	after.Refunded += e.Refunded()
	after.Recharged += e.Recharged()
	after.Adjusted += e.Adjusted()
	after.Funded = w.Funded || e.Type == Recharge
	after.LiveSessions += p.Live
	after.SpentDay, after.SpentToday = p.moveDay(w.SpentDay, w.SpentToday)
	return after, nil
}

// moveDay returns what was spent on a day, and the day, after a posting.
func (p Posting) moveDay(day time.Time, today domain.Money) (time.Time, domain.Money) {
	switch {
	case p.Day.Equal(day):
		return day, max(0, today+p.Spent)
	case p.Day.After(day) && p.Spent > 0: // the first spending of a later day
		return p.Day, p.Spent
	case p.Spent > 0: // the clock was ahead; or, one day later, another posting was first after midnight
		if day.Sub(p.Day) > 24*time.Hour {
			day = p.Day
		}
		return day, today + p.Spent
	}
	return day, today
}
