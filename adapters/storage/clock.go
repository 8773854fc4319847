package storage

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/postgres"
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
	log  *slog.Logger
}

// reading is one reading of the server's clock.
type reading struct {
	server time.Time
	at     time.Time // by the monotonic clock
}

var _ ports.Clock = (*clock)(nil)

// Now returns the time in UTC, truncated to microseconds, which both databases keep.
func (c *clock) Now() time.Time {
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
	skew := c.host().Sub(c.Now())
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

// MeasureClock reads the database's clock. Clock goes by its last answer until the next.
func (s *Store) MeasureClock(ctx context.Context) error {
	if s.postgres == nil || s.config.Now != nil {
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
	byServer := s.postgres != nil && s.config.Now == nil
	switch {
	case s.config.Now != nil:
		s.clock.host, s.now = s.config.Now, s.config.Now
	case s.postgres == nil:
		// Leases of one process are measured as its gateway does it, by the monotonic clock: a
		// step of the wall clock, or the sleep of a laptop, loses none.
		began := s.config.Host()
		monotonic := time.Now()
		s.now = func() time.Time { return began.Add(time.Since(monotonic)) }
	default:
		s.now = s.clock.Now
	}
	s.leases = newLeaseSQL(func(parameter int) string {
		if byServer {
			return postgres.ServerNow
		}
		return "CAST(?" + strconv.Itoa(parameter) + " AS BIGINT)"
	})
	s.timed = func(args ...any) []any {
		if byServer {
			return args
		}
		return append(args, column.Micros(s.now()))
	}
	return s.MeasureClock(ctx)
}
