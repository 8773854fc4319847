package billing

import (
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
)

// KeyWallet is what a restricted key may spend, and what the sessions that it bought hold and have cost.
type KeyWallet struct {
	AgentID string
	KeyID   string
	Limits  account.Limits

	Held         domain.Money // by its sessions
	Spent        domain.Money // charged for them, less refunded
	LiveSessions int
	SpentDay     time.Time // the UTC day that SpentToday belongs to
	SpentToday   domain.Money
}

// Apply returns the key's money after a posting for one of its sessions.
func (k KeyWallet) Apply(p Posting) KeyWallet {
	k.Held += p.Entry.Held.Total()
	k.Spent += p.Entry.Charged() - p.Entry.Refunded()
	k.LiveSessions += p.Live
	k.SpentDay, k.SpentToday = p.moveDay(k.SpentDay, k.SpentToday)
	return k
}

// SpentOn is as that of a Wallet.
func (k KeyWallet) SpentOn(now time.Time) domain.Money {
	return Wallet{SpentDay: k.SpentDay, SpentToday: k.SpentToday}.SpentOn(now)
}

// keyLimit is a limit of a key and what is left of it.
type keyLimit struct {
	limit, spent, held, left domain.Money
}

// limits lists the limits of a key on money.
func (k KeyWallet) limits(now time.Time) (list []keyLimit) {
	b := k.Limits.Budget
	if b.Total != nil {
		list = append(list, keyLimit{*b.Total, k.Spent, k.Held, max(0, *b.Total-k.Spent-k.Held)})
	}
	if b.Daily != nil {
		today := k.SpentOn(now)
		list = append(list, keyLimit{*b.Daily, today, k.Held, max(0, *b.Daily-today)})
	}
	if b.PerPurchase != nil {
		list = append(list, keyLimit{*b.PerPurchase, k.Spent, k.Held, *b.PerPurchase})
	}
	return list
}

// Left returns the least that any limit leaves for one purchase, or false without a limit on money.
func (k KeyWallet) Left(now time.Time) (left domain.Money, limited bool) {
	for _, l := range k.limits(now) {
		if !limited || l.left < left {
			left, limited = l.left, true
		}
	}
	return left, limited
}

// MaySpend returns ErrBudgetExceeded if a purchase of x is beyond a limit of the key.
func (k KeyWallet) MaySpend(x domain.Money, now time.Time) error {
	for _, l := range k.limits(now) {
		if x > l.left {
			return ErrBudgetExceeded.
				Msgf("the budget of the key %s does not allow this purchase; buy less, or raise it by another key", k.KeyID).
				With("scope", "key").With("key_id", k.KeyID).With("limit", l.limit).With("spent", l.spent).
				With("held", l.held).With("left", l.left).With("required", x)
		}
	}
	return nil
}
