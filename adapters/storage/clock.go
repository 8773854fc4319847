package storage

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/sessions"
	"agentproxy/ports"
)

// MostSkew is how far this host's clock may be from the database's before a warning is logged.
const MostSkew = 2 * time.Second

// clock is the clock that all replicas of a database share. On PostgreSQL it is an estimate of the
// server's: the time that it returned last, and what has passed since by this process' monotonic
// clock. So neither an error nor a step of the host's wall clock moves it. On SQLite, which one
// process serves, it is the host's clock.
type clock struct {
	host func() time.Time
	last atomic.Pointer[reading] // nil on SQLite
	skew atomic.Int64            // of the host's clock, in nanoseconds
	far  atomic.Bool             // the skew was more than MostSkew
	held atomic.Pointer[held]    // nil: the clock counts
	log  *slog.Logger
}

// held is a clock that goes on from the last row of the database, until the chain agrees with the real one.
type held struct {
	from    time.Time
	at      time.Time // by the monotonic clock
	network string    // of the chain
}

// reading is one reading of the server's clock.
type reading struct {
	server time.Time
	at     time.Time // by the monotonic clock
}

var _ ports.Clock = (*clock)(nil)

// Now returns the time in UTC, truncated to microseconds, which both databases keep.
func (c *clock) Now() time.Time {
	if h := c.held.Load(); h != nil {
		return h.from.Add(time.Since(h.at)).UTC().Truncate(time.Microsecond)
	}
	return c.real()
}

// real returns the time that is not held.
func (c *clock) real() time.Time {
	now := c.host()
	if last := c.last.Load(); last != nil {
		now = last.server.Add(time.Since(last.at))
	}
	return now.UTC().Truncate(time.Microsecond)
}

// correct takes over a reading that is exact to within the given time. One that agrees with the
// estimate changes nothing, so that the estimate does not jitter.
func (c *clock) correct(r reading, within time.Duration) {
	const tolerance = time.Millisecond // by which the two monotonic clocks may have drifted apart
	last := c.last.Load()
	if last == nil || r.server.Sub(last.server.Add(r.at.Sub(last.at))).Abs() > within+tolerance {
		c.last.Store(&r)
	}
	skew := c.host().Sub(c.real())
	c.skew.Store(int64(skew))
	if far := skew.Abs() > MostSkew; far && !c.far.Swap(true) {
		c.log.Warn("this host's clock differs from the database's, by which the service goes; set it right",
			"ahead", skew.Round(time.Millisecond))
	} else if !far && c.far.Swap(false) {
		c.log.Info("this host's clock agrees with the database's again")
	}
}

// Clock returns the clock that all replicas of the database share.
func (s *Store) Clock() ports.Clock { return s.clock }

// ClockSkew returns by how much this host's clock was ahead of the database's when it was last
// measured.
func (s *Store) ClockSkew() time.Duration { return time.Duration(s.clock.skew.Load()) }

// Bounds of a clock that counts: by how much it may be ahead of the last row of the database when the service
// starts, behind it, and off the chain.
const (
	mostAhead    = time.Hour
	mostBehind   = 5 * time.Minute
	mostOffChain = 2 * time.Hour
)

// HoldClock compares the clock with the last row of the database. One that is far ahead may be wrong, and what it ends
// does not come back: Clock goes on from that row until MeasureClock finds that the chain, by which payments are read,
// is where the clock is. A network without blocks of its own, the empty one, holds nothing.
func (s *Store) HoldClock(ctx context.Context, network string) error {
	last, err := s.LastRow(ctx)
	if err != nil || last.IsZero() {
		return err
	}
	now := s.clock.Now()
	switch ahead := now.Sub(last); {
	case ahead < -mostBehind:
		s.config.Logger.Error("the clock is behind the last row of the database: it is wrong, or was", "behind", -ahead)
	case ahead > mostAhead && network != "":
		s.clock.held.Store(&held{from: last, at: time.Now(), network: network})
		s.config.Logger.Error("the clock is far ahead of the last row of the database: nothing expires until the chain "+
			"agrees with it", "ahead", ahead, "last", last)
	}
	return nil
}

// ClockHeld reports whether Clock goes on from the last row of the database.
func (s *Store) ClockHeld() bool { return s.clock.held.Load() != nil }

// LastRow returns when something was last written that happens all the time: an entry, or how far the chain is read;
// the zero time for a new database.
func (s *Store) LastRow(ctx context.Context) (at time.Time, err error) {
	var entry, read int64
	err = s.Read(ctx, func(_ context.Context, unit ports.Tx) error {
		return unit.(*tx).Row(`SELECT COALESCE((SELECT at FROM ledger_entries ORDER BY seq DESC LIMIT 1), 0),
			COALESCE((SELECT MAX(read_at) FROM recharge_marks), 0)`).Scan(&entry, &read)
	})
	if err != nil {
		return at, fmt.Errorf("read the last row: %w", err)
	}
	if newest := max(entry, read); newest > 0 {
		at = column.Time(newest)
	}
	return at, nil
}

// releaseClock goes by the clock again if the chain is where it is.
func (s *Store) releaseClock(ctx context.Context) error {
	h := s.clock.held.Load()
	if h == nil {
		return nil
	}
	var final int64
	err := s.Read(ctx, func(_ context.Context, unit ports.Tx) error {
		const query = "SELECT COALESCE(MAX(final_time), 0) FROM recharge_marks WHERE network = ?1"
		return unit.(*tx).Row(query, h.network).Scan(&final)
	})
	if err != nil {
		return fmt.Errorf("compare the clock with the chain: %w", err)
	}
	if off := s.clock.real().Sub(column.Time(final)); off.Abs() <= mostOffChain {
		s.clock.held.Store(nil)
		s.config.Logger.Info("the chain agrees with the clock", "off", off)
	}
	return nil
}

// MeasureClock reads the database's clock. Clock goes by its last answer until the next. It also ends what HoldClock
// began.
func (s *Store) MeasureClock(ctx context.Context) error {
	if err := s.releaseClock(ctx); err != nil {
		return err
	}
	if s.postgres.Now() == "" || s.config.Now != nil {
		return nil
	}
	server, at, within, err := s.postgres.ReadClock(ctx)
	if err != nil {
		return engine.Unavailable("read the database's clock", err)
	}
	s.clock.correct(reading{server: server, at: at}, within)
	return nil
}

// startClock chooses the clock of the store and the statements that depend on it.
func (s *Store) startClock(ctx context.Context) error {
	s.clock = &clock{host: s.config.Host, log: s.config.Logger}
	server := s.postgres.Now()
	byServer := server != "" && s.config.Now == nil
	switch {
	case s.config.Now != nil:
		s.clock.host, s.now = s.config.Now, s.config.Now
	case server == "":
		// Leases of one process are measured as its gateway does it, by the monotonic clock: a
		// step of the wall clock, or the sleep of a laptop, loses none.
		began := s.config.Host()
		monotonic := time.Now()
		s.now = func() time.Time { return began.Add(time.Since(monotonic)) }
	default:
		s.now = s.clock.Now
	}
	s.leases = sessions.NewLeaseSQL(func(parameter int) string {
		if byServer {
			return server
		}
		return "CAST(?" + strconv.Itoa(parameter) + " AS BIGINT)"
	}, func(args ...any) []any {
		if byServer {
			return args
		}
		return append(args, column.Micros(s.now()))
	})
	return s.MeasureClock(ctx)
}
