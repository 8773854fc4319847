package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"agentproxy/adapters/storage/commit"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/ledger"
	"agentproxy/adapters/storage/postgres"
	"agentproxy/adapters/storage/proof"
	"agentproxy/adapters/storage/sqlite"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// proofBounds are those of the proofs of the next store; tests change them.
var proofBounds = proof.Usual

// proofDatabase is a store as its proof reads it.
type proofDatabase struct{ *Store }

var _ proof.Database = proofDatabase{}

func (p proofDatabase) Read(ctx context.Context, fn func(*work.Unit) error) error {
	return p.Store.Read(ctx, func(_ context.Context, unit ports.Tx) error { return fn(&unit.(*tx).Unit) })
}

func (p proofDatabase) Update(ctx context.Context, fn func(*work.Unit) error) error {
	return p.Store.Update(ctx, ports.ReadSet{}, func(_ context.Context, unit ports.Tx) error {
		return fn(&unit.(*tx).Unit)
	})
}

func (p proofDatabase) Audit(ctx context.Context, fn func(engine.Conn) error) error {
	return p.database.Audit(ctx, fn)
}

// SumUp counts what ended since it ran last, and sums what is new by hour, day and month.
func (s *Store) SumUp(ctx context.Context) error {
	return ledger.SumUp(ctx, proofDatabase{s}, s.clock.Now())
}

// Open opens the database, which may still need Migrate. It returns ErrNewerSchema for one whose
// schema needs a newer program.
func Open(ctx context.Context, config Config) (*Store, error) {
	if (config.Path == "") == (config.URL == "") {
		return nil, errors.New("open database: give a path or a URL")
	}
	if config.Readers <= 0 {
		config.Readers = 8
	}
	if config.MaxConns <= 0 {
		config.MaxConns = 20
	}
	if config.Host == nil {
		config.Host = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{config: config, metrics: newMetrics(), notes: work.NewEventNotes()}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	counts := commit.Counts{Units: s.metrics.units, Batches: s.metrics.batches}
	if s.config.URL != "" {
		db, err := postgres.Open(ctx, s.config.URL, s.config.MaxConns, s.config.Seen, s.config.Logger)
		if err != nil {
			return err
		}
		s.shares, s.queued = commit.NewShares(max(1, db.Slots()/2), db.Patience), commit.NewShares(maxQueued, db.Patience)
		db.Retried = func(reason string) { s.metrics.retries.WithLabelValues(reason).Inc() }
		s.database, s.postgres, s.update, s.view = db, db, s.onPostgres, s.viewShared
		db.Space.Capacity, db.Space.Now = s.config.Capacity, s.config.Host
		for range committers {
			s.commits = append(s.commits, commit.New(counts, s.beginBatch, s.alone))
		}
		for range readers {
			s.reads = append(s.reads, newReader(s))
		}
	} else {
		db, err := sqlite.Open(ctx, s.config.Path, s.config.Readers)
		if err != nil {
			return err
		}
		s.sqlite = db
		s.commits = []*commit.Committer{commit.New(counts, s.beginOnFile, nil)}
		s.shares, s.queued = commit.NewShares(max(1, s.config.Readers/2), 0), commit.NewShares(maxQueued, 0)
		s.database, s.update, s.view = db, s.onSQLite, s.viewRecent
	}
	if err := s.startClock(ctx); err != nil {
		return err
	}
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	if err := s.database.MendFeed(ctx); err != nil {
		return fmt.Errorf("mend the order of events: %w", err)
	}
	orm, err := openORM(s.database.Dialector())
	s.work = &work.Database{ORM: orm, Now: s.now, Feed: s.database.Feed(), Hints: s.database.Hints(),
		OldEvents: s.database.OldEvents(), MonthOf: s.database.MonthOf}
	s.Prover = proof.New(proofDatabase{s}, s.clock, s.Pool() != nil, proofBounds)
	return err
}

// openORM opens GORM on a database. Each needs a config of its own: one that a SQLite and a
// PostgreSQL database share loses the row locks of PostgreSQL.
func openORM(dialector gorm.Dialector) (*gorm.DB, error) {
	orm, err := gorm.Open(dialector, &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		Logger:                 logger.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("gorm: %w", err)
	}
	return orm, nil
}

// Close waits for the running units and closes the database. Units that wait for the writer are
// refused as unavailable.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		if s.work != nil {
			_ = s.notes.Flush(context.Background(), s.noteEvents)
		}
		for _, c := range s.commits {
			c.Close()
		}
		for _, r := range s.reads {
			r.close()
		}
		if s.database != nil {
			err = s.database.Close()
		}
	})
	return err
}
