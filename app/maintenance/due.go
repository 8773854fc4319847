package maintenance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentproxy/app/ledger"
	"agentproxy/app/settlement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// What has a time at which it is due has a column for it, and one owner: the tasks below, which read
// that column each second on the leader. No job is stored beside it.

const (
	// concurrent is how many items a task treats at a time, so that the store can group their commits.
	concurrent = 8
	// retryAfter is how long an item that failed is left out, so that those that fail every time do
	// not take the places of the others.
	retryAfter = time.Minute
)

// ExpireSessions ends static sessions whose time is up.
func (p *Tasks) ExpireSessions(ctx context.Context) error {
	return p.due(ctx, "expire session",
		func(ctx context.Context, tx repos, now time.Time, limit int) ([]string, error) {
			return tx.Sessions().TimeDue(ctx, now, limit)
		}, p.expireSession, p.hub.SessionChanged, nil)
}

func (p *Tasks) expireSession(ctx context.Context, tx repos, id string, now time.Time) error {
	s, err := tx.Sessions().Load(ctx, id)
	if err != nil || s.Status != session.Active || s.ExpiresAt.IsZero() || now.Before(s.ExpiresAt) {
		return err
	}
	if renewing, err := settlement.Renewing(ctx, tx, s); err != nil || renewing {
		return err // the outcome of the renewal moves the end, or the session is due then
	}
	return p.transitions.Expire(ctx, tx, s, session.TimeExpired, now)
}

// ExpireTrials writes off trial credit at its date.
func (p *Tasks) ExpireTrials(ctx context.Context) error {
	return p.due(ctx, "expire trial",
		func(ctx context.Context, tx repos, now time.Time, limit int) ([]string, error) {
			return tx.Ledger().TrialsDue(ctx, now, limit)
		}, p.expireTrial, func(string) {}, nil)
}

// expireTrial needs no rule of its own: reading a wallet writes off what is past its date.
func (p *Tasks) expireTrial(ctx context.Context, tx repos, agentID string, now time.Time) error {
	_, err := ledger.NewBook(tx, p.ids, now).Wallet(ctx, agentID, false)
	return err
}

// Settle charges what dynamic sessions used by the hour, and gives back the rest of
// those that ended while a lease was outstanding.
func (p *Tasks) Settle(ctx context.Context) error {
	return p.due(ctx, "settle",
		func(ctx context.Context, tx repos, now time.Time, limit int) ([]string, error) {
			return tx.Sessions().SettleDue(ctx, now, limit)
		}, p.settleSession, func(string) {}, func(id string) ports.ReadSet {
			return ports.ReadSet{Sessions: []string{id}, Owners: true}
		})
}

// SettleLag returns how long the session that is due longest has waited for Settle; 0 if none is due.
func (p *Tasks) SettleLag(ctx context.Context) (lag time.Duration, err error) {
	err = p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		now := p.clock.Now()
		due, err := tx.Sessions().SettleDue(ctx, now, 1)
		if err != nil || len(due) == 0 {
			return err
		}
		at, err := tx.Traffic().SettleAt(ctx, due[0])
		if err == nil && !at.IsZero() {
			lag = max(now.Sub(at), 0)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("settle lag: %w", err)
	}
	return lag, nil
}

func (p *Tasks) settleSession(ctx context.Context, tx repos, id string, now time.Time) error {
	s, err := tx.Sessions().Load(ctx, id)
	if err != nil {
		return err
	}
	at, err := tx.Traffic().SettleAt(ctx, id)
	if err != nil || at.IsZero() || now.Before(at) {
		return err
	}
	u, err := tx.Traffic().Usage(ctx, id)
	if err != nil {
		return err
	}
	if s.Status.Over() && u.Leased > 0 {
		return tx.Traffic().SetSettleAt(ctx, id, now.Add(ledger.SettleLate))
	}
	settle := ledger.NewBook(tx, p.ids, now).Settle
	if s.Status.Over() {
		settle = ledger.NewBook(tx, p.ids, now).SettleEnded
	}
	if err := settle(ctx, &s, u); err != nil {
		return err
	}
	if err := tx.Traffic().SetSettleAt(ctx, id, time.Time{}); err != nil {
		return err
	}
	return tx.Sessions().Put(ctx, s)
}

// due lists up to batchSize ids and treats each in a transaction of its own, which decides anew. An
// error of one does not delay the others; that one is left out for retryAfter. What ahead names, if
// it is not nil, lets the store treat several in one transaction.
func (p *Tasks) due(ctx context.Context, what string,
	list func(context.Context, repos, time.Time, int) ([]string, error),
	treat func(context.Context, repos, string, time.Time) error, done func(id string),
	reads func(id string) ports.ReadSet) error {
	now := p.clock.Now()
	var ids []string
	err := p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		ids, err = list(ctx, tx, now, batchSize+p.failed.prune(now))
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var (
		wg     sync.WaitGroup
		slots  = make(chan struct{}, concurrent)
		mu     sync.Mutex
		faults []error
	)
	for _, id := range ids {
		if p.failed.has(what + id) {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var named ports.ReadSet
			if reads != nil {
				named = reads(id)
			}
			err := p.store.Update(ctx, named, func(ctx context.Context, tx repos) error {
				return treat(ctx, tx, id, p.clock.Now())
			})
			if err == nil {
				done(id)
				return
			}
			p.failed.add(what+id, now.Add(retryAfter))
			mu.Lock()
			defer mu.Unlock()
			faults = append(faults, fmt.Errorf("%s %s: %w", what, id, err))
		})
	}
	wg.Wait()
	return errors.Join(faults...)
}
