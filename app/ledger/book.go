// Package ledger posts the entries of sessions and reads an agent's money.
package ledger

import (
	"context"
	"strconv"
	"time"

	"agentproxy/app/notify"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// Repos is the repositories that a Book uses.
type Repos interface {
	notify.Repos
	Ledger() ports.Ledger
	Traffic() ports.Traffic
	Addresses() ports.Addresses
	KeyWallets() ports.KeyWallets
}

// Book posts the entries of sessions in one transaction, and keeps the session's
// own account of them. The caller stores the session afterwards.
type Book struct {
	tx  Repos
	ids ports.IDs
	now time.Time
}

// NewBook returns a Book for one transaction.
func NewBook(tx Repos, ids ports.IDs, now time.Time) Book { return Book{tx: tx, ids: ids, now: now} }

// Wallet reads a wallet to spend from. Trial credit that is past its date is
// not spendable: it is written off first, even if its job has not run yet. A dry
// run only leaves it out.
func (b Book) Wallet(ctx context.Context, agentID string, dryRun bool) (billing.Wallet, error) {
	w, err := b.tx.Ledger().Wallet(ctx, agentID)
	if err != nil || w.TrialExpired || w.TrialExpiresAt.IsZero() || b.now.Before(w.TrialExpiresAt) {
		return w, err
	}
	e, left := w.ExpireTrial()
	w.TrialExpired, w.Available.Trial = true, 0
	if dryRun {
		return w, nil
	}
	if left {
		e.ID, e.AgentID, e.Ref, e.At = b.ids.New(billing.IDPrefix), agentID, "trial_expiry:"+agentID, b.now
		if err := b.book(ctx, ports.Posting{Entry: e}); err != nil {
			return w, err
		}
	}
	return w, b.tx.Ledger().ExpireTrial(ctx, agentID)
}

// post books one entry for a session.
func (b Book) post(ctx context.Context, s session.Session, e billing.Entry, ref, text string, p ports.Posting) error {
	e.ID, e.AgentID, e.SessionID, e.Ref, e.At = b.ids.New(billing.IDPrefix), s.AgentID, s.ID, ref, b.now
	if e.Description == "" {
		e.Description = text
	}
	p.Entry, p.Key = e, s.BoughtBy.KeyID
	return b.book(ctx, p)
}

// book posts an entry, and notifies if the balance becomes low by it.
func (b Book) book(ctx context.Context, p ports.Posting) error {
	booked, err := b.tx.Ledger().Post(ctx, p)
	if err != nil {
		return err
	}
	return notify.BalanceChanged(ctx, b.tx, b.ids, b.now, booked)
}

// Hold takes cost out of the wallet for a purchase, by the means that may pay for it. ref
// distinguishes repeated purchases of one session; live is added to the agent's live sessions.
func (b Book) Hold(
	ctx context.Context, w billing.Wallet, s *session.Session, cost domain.Money, by billing.FundingSource,
	ref string, live int,
) error {
	if err := b.MaySpend(ctx, w, s.BoughtBy.KeyID, cost); err != nil {
		return err
	}
	e, err := w.Hold(cost, by)
	if err != nil {
		return err
	}
	s.Money.Held = s.Money.Held.Add(e.Held)
	err = b.post(ctx, *s, e, "hold:"+s.ID+ref, "held for "+s.ProductNo,
		ports.Posting{Spent: cost, Day: billing.Day(b.now), Live: live})
	if err != nil {
		return err
	}
	for _, c := range w.ThresholdsReached(cost, b.now) {
		if err := notify.BudgetReached(ctx, b.tx, b.ids, b.now, w, c); err != nil {
			return err
		}
	}
	return nil
}

// Charge takes x out of what the session holds.
func (b Book) Charge(ctx context.Context, s *session.Session, x domain.Money) error {
	return b.chargeFor(ctx, s, x, b.now)
}

// chargeFor is like Charge for traffic of an hour, in which it is summed.
func (b Book) chargeFor(ctx context.Context, s *session.Session, x domain.Money, hour time.Time) error {
	if x <= 0 {
		return nil
	}
	e := billing.Charge(s.Money.Held, x)
	s.Money.Held = s.Money.Held.Add(e.Held)
	s.Money.Charged = s.Money.Charged.Add(e.Held.Neg())
	total := strconv.FormatInt(int64(s.Money.Charged.Total()), 10)
	return b.post(ctx, *s, e, "charge:"+s.ID+":"+total, "charged for "+s.ProductNo, ports.Posting{Hour: hour})
}

// Release gives back everything that the session still holds. ref distinguishes
// repeated releases of one session; held is when it was taken.
func (b Book) Release(ctx context.Context, s *session.Session, ref, why string, held time.Time) error {
	kept := s.Money.Held
	if kept.Total() == 0 {
		return nil
	}
	w, err := b.tx.Ledger().Wallet(ctx, s.AgentID)
	if err != nil {
		return err
	}
	spent, day := s.SpentLast(held)
	s.Money.Held = billing.Funds{}
	return b.postReturn(ctx, *s, w.Release(kept, b.now), "release:"+s.ID+ref, why, ports.Posting{Spent: -spent, Day: day})
}

// refund returns x of what the session was charged.
func (b Book) refund(ctx context.Context, s *session.Session, x domain.Money, why string) error {
	return b.Refund(ctx, s, x, "refund:"+s.ID, why)
}

// Refund returns x, at most what is left of what the session was charged, under a reference that is
// unique forever. The caller stores the session afterwards.
func (b Book) Refund(ctx context.Context, s *session.Session, x domain.Money, ref, why string) error {
	if x = min(x, s.Money.Charged.Total()-s.Money.Refunded.Total()); x <= 0 {
		return nil
	}
	w, err := b.tx.Ledger().Wallet(ctx, s.AgentID)
	if err != nil {
		return err
	}
	entries := w.Refund(s.Money.Charged.Add(s.Money.Refunded.Neg()), x, b.now)
	s.Money.Refunded = s.Money.Refunded.Add(entries[0].Available)
	return b.postReturn(ctx, *s, entries, ref, why, ports.Posting{})
}

// postReturn posts what returns money, and the write-off of expired trial credit that
// may follow it in the same unit.
func (b Book) postReturn(
	ctx context.Context, s session.Session, entries []billing.Entry, ref, why string, first ports.Posting,
) error {
	for i, e := range entries {
		p := ports.Posting{}
		if i == 0 {
			p = first
		} else {
			ref = "trial_expiry:" + ref
		}
		if err := b.post(ctx, s, e, ref, why, p); err != nil {
			return err
		}
	}
	return nil
}

// Settle charges the traffic used so far, in the hour of the last of it, so that cost and traffic
// are summed in the same hour.
func (b Book) Settle(ctx context.Context, s *session.Session, u traffic.Usage) error {
	return b.chargeFor(ctx, s, s.ChargeDue(u.Used()), u.UpdatedAt)
}

// SettleEnded settles a session that has ended, of which no lease can report more, and releases the
// rest of what it holds.
func (b Book) SettleEnded(ctx context.Context, s *session.Session, u traffic.Usage) error {
	if err := b.Settle(ctx, s, u); err != nil {
		return err
	}
	return b.Release(ctx, s, "", "unused part of "+s.ProductNo, s.CreatedAt)
}

// Finish does what the end of a session entails: its addresses are free, the
// agent has one live session less, and its money is settled, at once if no gateway
// can report more traffic, else when the last lease is closed or reclaimed. If it
// keeps what it holds, for an order whose outcome is to come, that is settled later. A
// direct session with traffic left, which its provider counts, is settled at settleBy,
// unless that is done before. The caller stores the session afterwards.
func (b Book) Finish(ctx context.Context, s *session.Session, keeps bool, settleBy time.Time) error {
	if err := b.tx.Ledger().SetLive(ctx, s.AgentID, s.BoughtBy.KeyID, -1); err != nil {
		return err
	}
	if s.Type == session.Static {
		if err := b.tx.Addresses().Free(ctx, s.ID); err != nil {
			return err
		}
	}
	usage, err := b.tx.Traffic().Usage(ctx, s.ID)
	if err != nil {
		return err
	}
	if s.Type == session.Dynamic && usage.Leased > 0 {
		return b.tx.Traffic().SetSettleAt(ctx, s.ID, b.now.Add(SettleLate))
	}
	if !settleBy.IsZero() && usage.Used() < s.Bytes {
		return b.tx.Traffic().SetSettleAt(ctx, s.ID, settleBy)
	}
	if s.Reason == session.ProviderLost || s.Reason == session.AccountDisabled || s.Reason == session.OperatorRequest {
		if err := b.refund(ctx, s, s.UnusedShare(b.now), "unused days of "+s.ProductNo); err != nil {
			return err
		}
	}
	if keeps {
		return nil
	}
	return b.SettleEnded(ctx, s, usage)
}

// SettleLate is when a session that ended with a lease outstanding is settled,
// should the gateway that holds the lease have died.
const SettleLate = 20 * time.Second

// Quote is the answer to a dry run: what a call would cost and leave.
type Quote struct {
	Cost         domain.Money
	BalanceAfter domain.Money
}

// QuoteOf returns the quote of a cost.
func QuoteOf(w billing.Wallet, cost domain.Money) *Quote {
	return &Quote{Cost: cost, BalanceAfter: w.Balance() - cost}
}
