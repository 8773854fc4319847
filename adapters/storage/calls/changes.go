package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// changes keeps what other processes are notified of.
type changes struct {
	*work.Unit
	feed Feed
}

// Feed is how a database orders changes.
type Feed interface {
	LastChange(c engine.Conn) (ports.Cursor, error)
	ChangesSince(ctx context.Context, c engine.Conn, after ports.Cursor, limit int) ([]ports.Change, ports.Cursor, error)
	PurgeChanges() string
}

// Changes returns the changes of which other processes are notified.
func Changes(u *work.Unit, feed Feed) ports.Changes { return changes{u, feed} }

func (r changes) Last(context.Context) (ports.Cursor, error) {
	last, err := r.feed.LastChange(r.Conn)
	if err != nil {
		return "", fmt.Errorf("read last change: %w", err)
	}
	return last, nil
}

func (r changes) Since(ctx context.Context, after ports.Cursor, limit int) ([]ports.Change, ports.Cursor, error) {
	list, next, err := r.feed.ChangesSince(r.ListContext(ctx), r.Conn, after, limit)
	if err != nil && !errors.Is(err, ports.ErrMissed) {
		return nil, "", fmt.Errorf("list changes: %w", err)
	}
	all := make([]ports.Change, 0, len(list))
	for _, c := range list {
		agents, events := work.Feeds(c.Agent)
		if !events {
			all = append(all, c)
		}
		for _, id := range agents {
			all = append(all, ports.Change{Feed: id})
		}
	}
	return all, next, err
}

func (r changes) Purge(_ context.Context, before time.Time, limit int) (int, error) {
	n, err := r.Exec(r.feed.PurgeChanges(), column.Micros(before), limit)
	return int(n), work.Wrap("purge changes", err)
}
