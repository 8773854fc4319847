package ledger

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// Statement is what moved an agent's balance in a UTC month, and a page of what its sessions did to it.
type Statement struct {
	From, To time.Time // the month; To is exclusive
	ports.StatementSums
	Closing domain.Money // of a month that is not over: now
	Agent   account.Agent
	Items   domain.List[ports.StatementItem]
	ByKey   []KeyPart // if they were asked for, in the order of the ids of keys, the rest last
}

// MaxStatement is the most sessions of a statement in one piece.
const MaxStatement = 10_000

// Statement reads a month, YYYY-MM, on one snapshot. It refuses months that have not begun and those
// before the account.
func (u *Wallet) Statement(ctx context.Context, agentID, month string, page domain.Page) (Statement, error) {
	return u.ReadStatement(ctx, StatementQuery{AgentID: agentID, Month: month, Page: page})
}

// StatementQuery asks for a statement.
type StatementQuery struct {
	AgentID string
	Month   string // YYYY-MM
	Key     string // what the sessions that it bought did to the balance; empty: the balance
	ByKey   bool   // with what those of each key did
	Page    domain.Page
}

// KeyPart is what the sessions that one key bought did to a balance in a month.
type KeyPart struct {
	ports.KeySums
	// Rest is what belongs to no key: what no session moved, and what those did whose key is not known.
	Rest bool
}

// Closing returns what they did until the end of the month.
func (k KeyPart) Closing() domain.Money { return k.Opening + k.Amount }

// Spent returns what was charged in the month, less what was refunded.
func (k KeyPart) Spent() domain.Money { return k.Charged - k.Refunded }

// ReadStatement is like Statement, of one key or with the part of each.
func (u *Wallet) ReadStatement(ctx context.Context, q StatementQuery) (s Statement, err error) {
	if s.From, err = time.Parse("2006-01", q.Month); err != nil {
		return s, domain.InvalidField("month", "must be YYYY-MM")
	}
	s.To = s.From.AddDate(0, 1, 0)
	if now := u.clock.Now(); s.From.After(now) {
		return s, domain.InvalidField("month", "has not begun; the current one is %s", now.Format("2006-01"))
	}
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		agent, err := tx.Agents().Get(ctx, q.AgentID)
		if err != nil {
			return err
		}
		if !s.To.After(agent.CreatedAt) {
			return domain.InvalidField("month", "is before the account, which is of %s", agent.CreatedAt.Format("2006-01"))
		}
		s.Agent = agent
		if q.Key != "" {
			return s.readKey(ctx, tx, q)
		}
		if s.StatementSums, err = tx.Statements().Statement(ctx, q.AgentID, s.From, s.To); err != nil {
			return err
		}
		if q.ByKey {
			if err := s.readKeys(ctx, tx, q); err != nil {
				return err
			}
		}
		s.Items, err = tx.Statements().StatementItems(ctx, q.AgentID, s.From, s.To, q.Page)
		return err
	})
	s.Closing = s.Opening
	for _, x := range s.ByType {
		s.Closing += x
	}
	return s, err
}

// readKey reads what the sessions of a key did. What is used up in an hour is booked after it.
func (s *Statement) readKey(ctx context.Context, tx repos, q StatementQuery) error {
	list, err := tx.Statements().StatementByKey(ctx, q.AgentID, q.Key, s.From, s.To)
	if err != nil {
		return err
	}
	k := KeyPart{KeySums: ports.KeySums{Key: q.Key}}
	for _, sums := range list {
		k.KeySums = sums
	}
	if q.ByKey {
		s.ByKey = []KeyPart{k}
	}
	s.StatementSums = ports.StatementSums{Opening: k.Opening, Spent: k.Spent(), ByType: map[billing.Type]domain.Money{
		billing.HoldEntry: -k.Held, billing.Release: k.Released, billing.RefundEntry: k.Refunded,
		billing.TrialExpiry: k.Amount + k.Held - k.Released - k.Refunded}}
	hours, err := tx.Statements().KeyHours(ctx, q.AgentID, q.Key, time.Time{}, s.To)
	if err != nil {
		return err
	}
	var before, until domain.Money
	for _, h := range hours {
		if until += h.Charged - h.Refunded; h.Start.Before(s.From) {
			before += h.Charged - h.Refunded
		}
	}
	s.OfBefore, s.Later = before-k.Before, until-k.Before-s.Spent
	s.Items, err = tx.Statements().KeyItems(ctx, q.AgentID, q.Key, s.From, s.To, q.Page)
	return err
}

// readKeys reads the part of each key, and adds what belongs to none, so that the parts are the account.
func (s *Statement) readKeys(ctx context.Context, tx repos, q StatementQuery) error {
	list, err := tx.Statements().StatementByKey(ctx, q.AgentID, "", s.From, s.To)
	rest := KeyPart{Rest: true}
	rest.Opening = s.Opening
	for _, x := range s.ByType {
		rest.Amount += x
	}
	for _, k := range list {
		if k.Key == "" { // is part of the rest
			rest.Held, rest.Charged, rest.Released, rest.Refunded = k.Held, k.Charged, k.Released, k.Refunded
			continue
		}
		rest.Opening, rest.Amount = rest.Opening-k.Opening, rest.Amount-k.Amount
		s.ByKey = append(s.ByKey, KeyPart{KeySums: k})
	}
	s.ByKey = append(s.ByKey, rest)
	return err
}
