package storage

import (
	"context"
	"errors"
	"fmt"
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
	n, err := r.Exec(r.store.database.PurgeChanges(), column.Micros(before), limit)
	return int(n), work.Wrap("purge changes", err)
}

// NoteEvents notes for every process which agents have new events, until ctx ends. Close notes the rest.
func (s *Store) NoteEvents(ctx context.Context) { s.notes.Run(ctx, s.note) }

// FlushEventNotes notes the agents that have events now.
func (s *Store) FlushEventNotes(ctx context.Context) error { return s.notes.Flush(ctx, s.note) }

// note notes changes of agents by their names.
func (s *Store) note(ctx context.Context, names []string) error {
	return s.Update(ctx, ports.ReadSet{}, func(_ context.Context, t ports.Tx) error {
		for _, name := range names {
			if err := t.Changes().(changes).NoteChange(name, ""); err != nil {
				return err
			}
		}
		return nil
	})
}
