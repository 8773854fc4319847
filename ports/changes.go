package ports

import (
	"context"
	"errors"
	"time"
)

// Change is a change of something that processes keep in memory.
type Change struct {
	Agent   string // the agent that changed, or
	Session string // the session that changed, or
	Feed    string // the agent that has another event
}

// Cursor is a place in the changes, between what was committed and what was not
// yet. Only the store that gave it can read it.
type Cursor string

// ErrMissed reports that more has changed than can be listed.
var ErrMissed = errors.New("changes were missed")

// Changes is how replicas and the operator's commands reach each other. Put of
// Agents, Sessions and Orders note changes by themselves. A reader gets each
// one that is committed, in whatever order units that run at once commit.
type Changes interface {
	// Last returns the cursor after every committed change.
	Last(ctx context.Context) (Cursor, error)
	// Since lists what was committed after a place, and returns the place behind
	// it. It is ErrMissed, with that place, when there is more than limit of it or
	// some of it may have been purged.
	Since(ctx context.Context, after Cursor, limit int) ([]Change, Cursor, error)
	// Purge removes changes older than the time, about limit of them, and returns how many. There
	// may be more of them if it is limit or more.
	Purge(ctx context.Context, before time.Time, limit int) (int, error)
}
