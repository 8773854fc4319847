package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// How long before the end agents are told of it.
const (
	tellExpiring = 24 * time.Hour
	tellTrial    = 3 * 24 * time.Hour
)

// RemindSessions tells of static sessions that will end soon, each time that
// their end is set.
func (u *Webhooks) RemindSessions(ctx context.Context) error {
	return u.remind(ctx, webhook.SessionExpiring, tellExpiring,
		func(ctx context.Context, tx ports.Tx, from, to time.Time) ([]reminder, error) {
			list, err := tx.Sessions().Expiring(ctx, from, to, passSize)
			return remindersOf(list, func(s session.Session) reminder {
				return reminder{s.ExpiresAt, s.AgentID, map[string]string{"session_id": s.ID, "status": string(s.Status)}}
			}), err
		})
}

// RemindTrials tells of trials that will end soon.
func (u *Webhooks) RemindTrials(ctx context.Context) error {
	return u.remind(ctx, webhook.TrialExpiring, tellTrial,
		func(ctx context.Context, tx ports.Tx, from, to time.Time) ([]reminder, error) {
			list, err := tx.Ledger().TrialsEnding(ctx, from, to, passSize)
			return remindersOf(list, func(w billing.Wallet) reminder {
				return reminder{w.TrialExpiresAt, w.AgentID, map[string]string{"agent_id": w.AgentID}}
			}), err
		})
}

// reminder is an end that an agent is told of.
type reminder struct {
	at      time.Time
	agentID string
	data    map[string]string
}

func remindersOf[T any](list []T, one func(T) reminder) []reminder {
	found := make([]reminder, len(list))
	for i, item := range list {
		found[i] = one(item)
	}
	return found
}

// remind tells of every end within ahead that is after those told before. How
// far it came is stored with what it told: nothing is told twice, and what a
// run missed the next one tells.
func (u *Webhooks) remind(ctx context.Context, of webhook.Type, ahead time.Duration,
	list func(ctx context.Context, tx ports.Tx, from, to time.Time) ([]reminder, error)) error {
	err := u.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		now := u.clock.Now()
		told, err := tx.Webhooks().NotifiedUpTo(ctx, "", string(of))
		if err != nil {
			return err
		}
		from, to := later(now, time.UnixMicro(told).UTC()), now.Add(ahead)
		if !from.Before(to) {
			return nil
		}
		found, err := list(ctx, tx, from, to)
		if err != nil {
			return err
		}
		found, to = whole(found, to)
		for _, r := range found {
			r.data["expires_at"] = r.at.Format(time.RFC3339)
			if _, err := tell(ctx, tx, u.ids, now, notice{agentID: r.agentID, of: of, data: r.data}); err != nil {
				return err
			}
		}
		_, err = tx.Webhooks().MarkNotified(ctx, "", string(of), to.UnixMicro())
		return err
	})
	if err != nil {
		return fmt.Errorf("tell %s: %w", of, err)
	}
	return nil
}

// whole leaves the last moment of a list that was cut to the next run, because
// more may end then, and returns how far the rest goes.
func whole(found []reminder, to time.Time) ([]reminder, time.Time) {
	if len(found) < passSize {
		return found, to
	}
	last := found[len(found)-1].at
	if n := slices.IndexFunc(found, func(r reminder) bool { return r.at.Equal(last) }); n > 0 {
		return found[:n], last.Add(-time.Microsecond)
	}
	return found, last
}

// overdueFor is how long a delivery waits beyond its time before its job is
// taken for lost.
const overdueFor = 5 * time.Minute

// Sweep stores a job for every delivery that waits far beyond its time. One
// whose job still waits gets no other.
func (u *Webhooks) Sweep(ctx context.Context) error {
	return u.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		now := u.clock.Now()
		overdue, err := tx.Webhooks().Overdue(ctx, now.Add(-overdueFor), passSize)
		if err != nil {
			return err
		}
		for _, d := range overdue {
			if err := schedule(ctx, tx, d, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// Recover makes every delivery that is due begin anew: the process that was at
// it may have died. It is for the start; what another process has at work may
// be sent twice.
func (u *Webhooks) Recover(ctx context.Context) error {
	now := u.clock.Now()
	for n := passSize; n == passSize; {
		err := u.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
			overdue, err := tx.Webhooks().Overdue(ctx, now, passSize)
			n = len(overdue)
			if err != nil {
				return err
			}
			for _, d := range overdue {
				d.NextAttemptAt = now // another time, so that it is another job
				if err := tx.Webhooks().PutDelivery(ctx, d); err != nil {
					return err
				}
				if err := schedule(ctx, tx, d, now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("recover deliveries: %w", err)
		}
	}
	return nil
}

// Overdue is how long the delivery has waited that was due first; 0: none is.
func (u *Webhooks) Overdue(ctx context.Context) (age time.Duration, err error) {
	now := u.clock.Now()
	err = u.store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		first, err := tx.Webhooks().Overdue(ctx, now, 1)
		if err == nil && len(first) > 0 {
			age = now.Sub(first[0].NextAttemptAt)
		}
		return err
	})
	return age, err
}
