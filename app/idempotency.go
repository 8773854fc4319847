package app

import (
	"bytes"
	"context"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Call is a call under an Idempotency-Key; without a Key it is none.
type Call struct {
	Key  string
	Path string // the concrete path of the resource
	Hash []byte // of the request's meaning: spacing and key order do not matter
}

// inFlight is the stored status of a call whose answer is not known yet, and
// inFlightFor how long a retry is told to wait for it.
const (
	inFlight    = 0
	inFlightFor = 60 * time.Second
	keepCalls   = 24 * time.Hour
)

// orderMark parts the session from the upstream order in what a key names: a
// renewal that is refused frees its own key alone.
const orderMark = "#"

// firstRun finds the first run of a call. The same key with another request is
// refused.
func firstRun(ctx context.Context, tx ports.Tx, agentID string, c Call, now time.Time) (prev ports.Call, found bool, err error) {
	if c.Key == "" {
		return prev, false, nil
	}
	prev, found, err = tx.Idempotency().Find(ctx, agentID, c.Path, c.Key, now.Add(-keepCalls))
	if err != nil || !found {
		return prev, false, err
	}
	if !bytes.Equal(prev.Request, c.Hash) {
		return prev, false, domain.ErrIdempotencyConflict
	}
	return prev, true, nil
}

// keepCall stores the key of a call that takes effect, in the unit of its effect.
func keepCall(ctx context.Context, tx ports.Tx, agentID string, c Call, resource string, status int, now time.Time) error {
	if c.Key == "" {
		return nil
	}
	return tx.Idempotency().Put(ctx, ports.Call{AgentID: agentID, Path: c.Path, Key: c.Key, Request: c.Hash,
		Resource: resource, Status: status, CreatedAt: now})
}

// replayed finds the call's first run: the first status, and the session as it
// stands now.
func (u *Sessions) replayed(ctx context.Context, tx ports.Tx, agentID string, c Call, now time.Time) (Done, bool, error) {
	prev, found, err := firstRun(ctx, tx, agentID, c, now)
	if err != nil || !found {
		return Done{}, false, err
	}
	id, _, _ := strings.Cut(prev.Resource, orderMark)
	r, err := tx.Sessions().Read(ctx, agentID, id)
	if err != nil {
		return Done{}, false, err
	}
	if prev.Status == inFlight {
		if renewing := prev.Resource != id && r.Money.Held.Total() > 0; (r.Status == session.Creating || renewing) &&
			now.Sub(prev.CreatedAt) < inFlightFor {
			e := domain.ErrIdempotencyConflict.Msgf("the first call with this key is still running; repeat it shortly").
				With("state", "in_progress").After(time.Second)
			e.Retryable = true
			return Done{}, false, e
		}
		switch {
		case r.Status == session.Creating, prev.Resource != id:
			prev.Status = 202
		default:
			prev.Status = 201
		}
	}
	return Done{View: u.view(r, now), Status: prev.Status, Replayed: true}, true, nil
}

// keep is keepCall for a session.
func (u *Sessions) keep(ctx context.Context, tx ports.Tx, agentID string, c Call, id string, status int, now time.Time) error {
	return keepCall(ctx, tx, agentID, c, id, status, now)
}
