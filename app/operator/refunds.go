package operator

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/audit"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// ErrRefund refuses a refund of more than is left of what was charged.
var ErrRefund = &domain.Error{Kind: domain.Conflict, Code: "REFUND_REFUSED", Message: "there is nothing to refund"}

// Refund asks for a part of what a session was charged to be given back.
type Refund struct {
	SessionID string
	Percent   int    // of everything that it was charged, 1 to 100
	Reason    string // which its agent sees
	Ref       string // the operator's reference; a repeated one refunds no second time
}

func (in Refund) check() error {
	switch {
	case in.Percent < 1 || in.Percent > 100:
		return domain.InvalidField("percent", "must be 1 to 100")
	case strings.TrimSpace(in.Reason) == "" || utf8.RuneCountInString(in.Reason) > ledger.MaxReason:
		return domain.InvalidField("reason", "must have 1 to %d characters", ledger.MaxReason)
	case utf8.RuneCountInString(in.Ref) > audit.MaxRef:
		return domain.InvalidField("ref", "must have at most %d characters", audit.MaxRef)
	}
	return nil
}

// description returns the text of the entry. It begins with what was asked for.
func (in Refund) description() string {
	return fmt.Sprintf("refund of %d %%: %s", in.Percent, in.Reason)
}

// same reports whether an entry was booked for the same request.
func (in Refund) same(e billing.Entry) bool {
	asked, _, _ := strings.Cut(in.description(), ":")
	booked, _, _ := strings.Cut(e.Description, ":")
	return e.SessionID == in.SessionID && asked == booked
}

// Refund gives back a part of what a session was charged until now, rounded down, own money first as
// charges took trial credit first. A live dynamic session is charged at the end of each hour. Refund
// refuses more than is left, so that no session is refunded more than it was charged. Under a Ref that
// was used for the same, it returns what was booked then.
func (u *Sessions) Refund(ctx context.Context, in Refund) (booked billing.Entry, err error) {
	if err := in.check(); err != nil {
		return booked, err
	}
	ref := "refund:act:" + u.ids.New("")
	if in.Ref != "" {
		ref = "refund:ref:" + in.Ref
	}
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		s, err := tx.Sessions().Load(ctx, in.SessionID)
		if err != nil {
			return err
		}
		if _, err := tx.Ledger().Wallet(ctx, s.AgentID); err != nil { // of two calls one comes after the other
			return err
		}
		old, found, err := tx.Ledger().EntryOf(ctx, ref)
		switch {
		case err != nil:
			return err
		case found && !in.same(old):
			return domain.InvalidField("ref", "was used for the %s of %s; choose another one",
				strings.SplitN(old.Description, ":", 2)[0], old.SessionID)
		case found:
			booked = old
			return nil
		}
		booked, err = u.refund(ctx, tx, s, in, ref)
		return err
	})
	if err == nil {
		u.hub.SessionChanged(in.SessionID)
	}
	return booked, err
}

func (u *Sessions) refund(
	ctx context.Context, tx repos, s session.Session, in Refund, ref string,
) (booked billing.Entry, err error) {
	charged, refunded := s.Money.Charged.Total(), s.Money.Refunded.Total()
	x := domain.Money(domain.MulDiv(int64(charged), int64(in.Percent), 100))
	if x <= 0 || x > charged-refunded {
		return booked, ErrRefund.Msgf("%d %% of the %s USD that the session was charged are %s USD, and %s USD of it were "+
			"refunded before", in.Percent, charged, x, refunded)
	}
	if err := ledger.NewBook(tx, u.ids, u.clock.Now()).Refund(ctx, &s, x, ref, in.description()); err != nil {
		return booked, err
	}
	if err := tx.Sessions().Put(ctx, s); err != nil {
		return booked, err
	}
	booked, _, err = tx.Ledger().EntryOf(ctx, ref)
	return booked, err
}
