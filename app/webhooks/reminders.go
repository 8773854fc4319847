package webhooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agentproxy/app/notify"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// How long before the end agents are reminded of it, and how many rows one run
// takes on.
const (
	remindSession = 24 * time.Hour
	remindTrial   = 3 * 24 * time.Hour
	remindLimit   = 500
)

// RemindSessions notifies of static sessions that will end soon, each time that
// their end is set.
func (u *Service) RemindSessions(ctx context.Context) error {
	return u.remind(ctx, webhook.SessionExpiring, remindSession,
		func(ctx context.Context, tx repos, from, to time.Time) ([]reminder, error) {
			list, err := tx.Sessions().Expiring(ctx, from, to, remindLimit)
			return remindersOf(list, func(s session.Session) reminder {
				return reminder{s.ExpiresAt, s.AgentID, map[string]string{"session_id": s.ID, "status": string(s.Status)}}
			}), err
		})
}

// RemindTrials notifies of trials that will end soon.
func (u *Service) RemindTrials(ctx context.Context) error {
	return u.remind(ctx, webhook.TrialExpiring, remindTrial,
		func(ctx context.Context, tx repos, from, to time.Time) ([]reminder, error) {
			list, err := tx.Ledger().TrialsEnding(ctx, from, to, remindLimit)
			return remindersOf(list, func(w billing.Wallet) reminder {
				return reminder{w.TrialExpiresAt, w.AgentID, map[string]string{"agent_id": w.AgentID}}
			}), err
		})
}

// reminder is an end that an agent is notified of.
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

// remind notifies of every end within ahead that is after those of earlier runs.
// How far it came is stored in the same transaction: no reminder is sent twice, and
// the next run sends what one missed.
func (u *Service) remind(ctx context.Context, of webhook.Type, ahead time.Duration,
	list func(ctx context.Context, tx repos, from, to time.Time) ([]reminder, error)) error {
	err := u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		now := u.clock.Now()
		upTo, err := tx.Webhooks().NotifiedUpTo(ctx, "", string(of))
		if err != nil {
			return err
		}
		from, to := time.UnixMicro(upTo).UTC(), now.Add(ahead)
		if from.Before(now) {
			from = now
		}
		if !from.Before(to) {
			return nil
		}
		found, err := list(ctx, tx, from, to)
		if err != nil {
			return err
		}
		found, to = complete(found, to)
		for _, r := range found {
			r.data["expires_at"] = r.at.Format(time.RFC3339)
			n := notify.Notification{AgentID: r.agentID, Of: of, Data: r.data}
			if _, err := notify.Enqueue(ctx, tx, u.ids, now, n); err != nil {
				return err
			}
		}
		_, err = tx.Webhooks().MarkNotified(ctx, "", string(of), to.UnixMicro())
		return err
	})
	if err != nil {
		return fmt.Errorf("remind of %s: %w", of, err)
	}
	return nil
}

// complete leaves the last moment of a list that was cut to the next run, because
// more may end then, and returns how far the rest goes.
func complete(found []reminder, to time.Time) ([]reminder, time.Time) {
	if len(found) < remindLimit {
		return found, to
	}
	last := found[len(found)-1].at
	if n := slices.IndexFunc(found, func(r reminder) bool { return r.at.Equal(last) }); n > 0 {
		return found[:n], last.Add(-time.Microsecond)
	}
	return found, last
}

// overdueFor is how long a delivery waits beyond its time before its job counts as
// lost.
const overdueFor = 5 * time.Minute

// Sweep stores a job for every delivery that waits far beyond its time, unless its
// job still waits. The job owns the schedule; the sweep replaces one that was lost or
// has failed every time.
func (u *Service) Sweep(ctx context.Context) error {
	return u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		now := u.clock.Now()
		overdue, err := tx.Webhooks().Overdue(ctx, now.Add(-overdueFor), remindLimit)
		if err != nil {
			return err
		}
		for _, d := range overdue {
			if err := notify.Schedule(ctx, tx, d, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// Recover restarts every delivery that is due: the process that attempted it may
// have died. It is for the start; an attempt of another process may be sent twice.
func (u *Service) Recover(ctx context.Context) error {
	now := u.clock.Now()
	for n := remindLimit; n == remindLimit; {
		err := u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
			overdue, err := tx.Webhooks().Overdue(ctx, now, remindLimit)
			n = len(overdue)
			if err != nil {
				return err
			}
			for _, d := range overdue {
				d.NextAttemptAt = now // another time, so that it is another job
				if err := tx.Webhooks().PutDelivery(ctx, d); err != nil {
					return err
				}
				if err := notify.Schedule(ctx, tx, d, now); err != nil {
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

// Overdue returns how long the delivery that was due first has waited; 0 if none is
// due.
func (u *Service) Overdue(ctx context.Context) (age time.Duration, err error) {
	now := u.clock.Now()
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		first, err := tx.Webhooks().Overdue(ctx, now, 1)
		if err == nil && len(first) > 0 {
			age = now.Sub(first[0].NextAttemptAt)
		}
		return err
	})
	return age, err
}
