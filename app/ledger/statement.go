package ledger

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/ports"
)

// Statement is what moved an agent's balance in a UTC month, and a page of what its sessions did to it.
type Statement struct {
	From, To time.Time // the month; To is exclusive
	ports.StatementSums
	Closing domain.Money // of a month that is not over: now
	Agent   account.Agent
	Items   domain.List[ports.StatementItem]
}

// MaxStatement is the most sessions of a statement in one piece.
const MaxStatement = 10_000

// WholeStatement is like Statement with all sessions, at most MaxStatement of them: what is printed or filed has no
// pages.
func (u *Wallet) WholeStatement(ctx context.Context, agentID, month string) (Statement, error) {
	return u.Statement(ctx, agentID, month, domain.Page{Number: 1, Size: MaxStatement})
}

// Statement reads a month, YYYY-MM, on one snapshot. It refuses months that have not begun and those
// before the account.
func (u *Wallet) Statement(ctx context.Context, agentID, month string, page domain.Page) (s Statement, err error) {
	if s.From, err = time.Parse("2006-01", month); err != nil {
		return s, domain.InvalidField("month", "must be YYYY-MM")
	}
	s.To = s.From.AddDate(0, 1, 0)
	if now := u.clock.Now(); s.From.After(now) {
		return s, domain.InvalidField("month", "has not begun; the current one is %s", now.Format("2006-01"))
	}
	err = u.store.View(ctx, func(ctx context.Context, tx repos) error {
		agent, err := tx.Agents().Get(ctx, agentID)
		if err != nil {
			return err
		}
		if !s.To.After(agent.CreatedAt) {
			return domain.InvalidField("month", "is before the account, which is of %s", agent.CreatedAt.Format("2006-01"))
		}
		s.Agent = agent
		if s.StatementSums, err = tx.Ledger().Statement(ctx, agentID, s.From, s.To); err != nil {
			return err
		}
		s.Items, err = tx.Ledger().StatementItems(ctx, agentID, s.From, s.To, page)
		return err
	})
	s.Closing = s.Opening
	for _, x := range s.ByType {
		s.Closing += x
	}
	return s, err
}
