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
	id, order := idempotency.CutResource(prev.Resource)
	renewal := order != ""
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
		switch {
		case r.Status.Over() && (renewal || r.ActivatedAt.IsZero()):
			prev.Outcome = ports.Ended
		case renewal || r.Status == session.Creating:
			prev.Outcome = ports.Pending
		default:
			prev.Outcome = ports.Created
		}
	}
	if prev.Outcome == ports.Ended {
		return Done{}, false, endedMeanwhile(r.Session)
	}
	return Done{View: u.view(r, now), Outcome: prev.Outcome, Replayed: true}, true, nil
}

// endedMeanwhile refuses a call whose session ended while it ran.
func endedMeanwhile(s session.Session) error {
	return session.ErrOver.Msgf("the session became %s during this call; its cost shows what was charged, is held "+
		"or came back",
		s.Status).With("session_id", s.ID)
}

// answered stores how the first call under a key was answered while what it asked
// for was on its way: a repeated call then gets the same outcome at once. A key that
// was dropped meanwhile stays so.
func (u *Service) answered(
	ctx context.Context, agentID string, call idempotency.Call, resource string, outcome ports.Outcome,
) error {
	if call.Key == "" {
		return nil
	}
	return u.store.Update(context.WithoutCancel(ctx), ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		return tx.Idempotency().SetOutcome(ctx, agentID, call.Path, call.Key, resource, outcome)
	})
}
