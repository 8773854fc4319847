package sessions

import (
	"context"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// replayed answers a call whose Idempotency-Key was used before: the outcome of
// the first run, with the session as it is now. It returns false if there was
// none.
func (u *Service) replayed(
	ctx context.Context, tx Repos, agentID string, c idempotency.Call, now time.Time,
) (Done, bool, error) {
	prev, found, err := idempotency.FirstRun(ctx, tx, agentID, c, now)
	if err != nil || !found {
		return Done{}, false, err
	}
	id, renewal := idempotency.SplitResource(prev.Resource)
	r, err := tx.Sessions().Read(ctx, agentID, id)
	if err != nil {
		return Done{}, false, err
	}
	if prev.Outcome == ports.InFlight {
		running := r.Status == session.Creating || renewal && r.Money.Held.Total() > 0
		if running && now.Sub(prev.CreatedAt) < idempotency.InFlightTimeout {
			e := domain.ErrIdempotencyConflict.Msgf("the first call with this key is still running; repeat it shortly").
				With("state", "in_progress").After(time.Second)
			e.Retryable = true
			return Done{}, false, e
		}
		prev.Outcome = ports.Created
		if renewal || r.Status == session.Creating {
			prev.Outcome = ports.Pending
		}
	}
	return Done{View: u.view(r, now), Outcome: prev.Outcome, Replayed: true}, true, nil
}

// answered stores how the first call under a key was answered while what it asked
// for was on its way: a repeated call then gets the same outcome at once.
func (u *Service) answered(
	ctx context.Context, agentID string, call idempotency.Call, resource string, outcome ports.Outcome,
) error {
	if call.Key == "" {
		return nil
	}
	return u.store.Update(context.WithoutCancel(ctx), func(ctx context.Context, tx Repos) error {
		c, found, err := tx.Idempotency().Find(ctx, agentID, call.Path, call.Key, time.Time{})
		if err != nil || !found || c.Resource != resource {
			return err
		}
		c.Outcome = outcome
		return tx.Idempotency().Put(ctx, c)
	})
}
