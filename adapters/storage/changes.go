package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// changes keeps what other processes are notified of.
type changes struct{ *tx }

func (r changes) Last(context.Context) (ports.Cursor, error) {
	last, err := r.store.database.LastChange(r.Conn)
	if err != nil {
		return "", fmt.Errorf("read last change: %w", err)
	}
	return last, nil
}

func (r changes) Since(ctx context.Context, after ports.Cursor, limit int) ([]ports.Change, ports.Cursor, error) {
	list, next, err := r.store.database.ChangesSince(r.ListContext(ctx), r.Conn, after, limit)
	if err != nil && !errors.Is(err, ports.ErrMissed) {
		return nil, "", fmt.Errorf("list changes: %w", err)
	}
	for i, c := range list {
		if agentID, event := strings.CutPrefix(c.Agent, work.FeedMark); event {
			list[i] = ports.Change{Feed: agentID}
		}
	}
	return list, next, err
}

func (r changes) Purge(_ context.Context, before time.Time, limit int) (int, error) {
	n, err := r.Exec(r.store.database.PurgeChanges(), column.Micros(before), limit)
	return int(n), work.Wrap("purge changes", err)
}
