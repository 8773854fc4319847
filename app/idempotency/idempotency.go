// Package idempotency finds and keeps the calls that agents make under an
// Idempotency-Key.
package idempotency

import (
	"bytes"
	"context"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/ports"
)

// Call is a call under an Idempotency-Key; without a Key there is none.
type Call struct {
	Key  string
	Path string // the concrete path of the resource
	Hash []byte // of the request's meaning: spacing and key order do not matter
	// Refusal refuses the first run: a repeated call has its answer all the same. Nil: none.
	Refusal error
}

// InFlightTimeout is how long a repeated call is refused while the first one is
// in flight, and Retention how long a key is kept.
const (
	InFlightTimeout = 60 * time.Second
	Retention       = 24 * time.Hour
)

// Repos is the repository of the keys.
type Repos interface{ Idempotency() ports.Idempotency }

// FirstRun returns the first run of a call, and false if there is none. It
// returns domain.ErrIdempotencyConflict if the key was used for another request,
// and c.Refusal if there is no first run.
func FirstRun(
	ctx context.Context, tx Repos, agentID string, c Call, now time.Time,
) (prev ports.Call, found bool, err error) {
	if c.Key == "" {
		return prev, false, nil
	}
	prev, found, err = tx.Idempotency().Find(ctx, agentID, c.Path, c.Key, now.Add(-Retention))
	switch {
	case err != nil:
		return prev, false, err
	case !found:
		return prev, false, c.Refusal
	}
	if !bytes.Equal(prev.Request, c.Hash) {
		return prev, false, domain.ErrIdempotencyConflict
	}
	return prev, true, nil
}

// Store stores the key of a call in the transaction of its effect.
func Store(
	ctx context.Context, tx Repos, agentID string, c Call, resource string, outcome ports.Outcome, now time.Time,
) error {
	if c.Key == "" {
		return nil
	}
	return tx.Idempotency().Keep(ctx, ports.Call{AgentID: agentID, Path: c.Path, Key: c.Key, Request: c.Hash,
		Resource: resource, Outcome: outcome, CreatedAt: now})
}

// RenewalResource returns what the key of a renewal names: the session and the
// order, so that a renewal that is refused frees its own key alone.
func RenewalResource(sessionID, orderID string) string {
	return sessionID + ports.ResourceSeparator + orderID
}

// CutResource returns the session that a key names, and the id of what was made for it, such as the order of a
// renewal; empty if the call made the session.
func CutResource(resource string) (sessionID, id string) {
	sessionID, id, _ = strings.Cut(resource, ports.ResourceSeparator)
	return sessionID, id
}
