package storage

import (
	"context"
	"time"

	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// writeProbe is the name of the value that ProbeWrite writes.
const writeProbe = "write-probe"

// ProbeWrite writes a small value and commits it: a full disk of SQLite, a failed one and a PostgreSQL that is a
// standby can be read and not written. On PostgreSQL it shows no full disk: the row is updated in the page that has it.
func (s *Store) ProbeWrite(ctx context.Context) error {
	return s.Update(ctx, ports.ReadSet{}, func(_ context.Context, unit ports.Tx) error {
		// The value differs each time, or the statement would change nothing.
		return unit.(*tx).Later("probe writing", `INSERT INTO service_values (name, value) VALUES (?1, ?2)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, writeProbe, []byte(s.clock.Now().Format(probeFormat)))
	})
}

const probeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// KeepPartitions makes the partitions of the event log for the days that come, and drops those whose events are
// all from before a time. On SQLite, which has none, Trim of Events removes them.
func (s *Store) KeepPartitions(ctx context.Context, retention time.Duration) error {
	now := s.clock.Now()
	made, dropped, err := s.postgres.KeepPartitions(ctx, now, now.Add(-retention))
	if made+dropped > 0 {
		s.config.Logger.Info("days of the event log", "made", made, "dropped", dropped)
	}
	return err
}

// RaiseFeed is to be called when the database went back in time: the places of events go on behind all that were given
// out before, so that the cursors of agents skip none that is to come.
func (s *Store) RaiseFeed(ctx context.Context) error {
	return work.Wrap("raise the places of events", s.database.RaiseFeed(ctx))
}

// FeedHeld returns for how long transactions under way have held up the events of agents, 0 if they do not; on SQLite
// none does.
func (s *Store) FeedHeld(ctx context.Context) (time.Duration, error) {
	held, err := s.database.FeedHeld(ctx, s.now())
	return held, s.database.Classify(ctx, err)
}

// Free returns how many bytes are left for the database: of the disk of a SQLite file, and of Config.Capacity on
// PostgreSQL, which has no function for its disk.
func (s *Store) Free() (bytes uint64, known bool, err error) { return s.database.Free() }

// Scarce reports whether less than a twentieth of the space for the database is left. On PostgreSQL it is also
// reported for five minutes after the server had no space left on its disk.
func (s *Store) Scarce() (bool, error) { return s.database.Scarce() }

// DiskFull reports whether PostgreSQL had no space left on its disk within the last five minutes.
func (s *Store) DiskFull() bool { return s.database.DiskFull() }
