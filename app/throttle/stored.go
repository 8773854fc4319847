package throttle

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/app/cache"
	"agentproxy/domain/account"
	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// StoredConfig is how many bytes an agent may make the service store on a UTC day; 0 is unlimited.
type StoredConfig struct {
	Funded, Trial ratelimit.Daily
	FundedFrom    account.Funding // own money from which an account is no trial
	// Scarce reports whether the space of the database is about to end: accounts on trial then store nothing,
	// however little they stored. Nil: it never is.
	Scarce func() (bool, error)
}

// Stored counts what agents make the service store, and decides whether one may go on. It counts in
// memory, and takes a part of the agent's budget from the state that processes share when it used the last
// one, so that a call costs neither a statement nor a wait. A restart forgets what a process counted since.
// The nil Stored counts nothing and refuses none.
type Stored struct {
	cfg    StoredConfig
	store  ports.Unit[storedRepos]
	clock  ports.Clock
	shared *sharedLimits // nil if the budgets are not shared
	log    *slog.Logger
	first  int64 // what an agent of any tier may store before its tier is read
	agents cache.Cache[string, *storedBy]

	scarce atomic.Bool // when it was looked for last
}

// storedRepos is what the tier of an agent is read from.
type storedRepos interface {
	Agents() ports.Agents
	Ledger() ports.Ledger
}

const (
	storedAgents = 100_000
	storedAfter  = 25 * time.Hour // without a write, when its day is over
	tierEvery    = time.Minute    // how old a tier may be that refuses
	scarceWait   = time.Minute
)

// NewStored returns the budgets: of all processes together if the limits are shared. It is nil without a limit
// and without a look for space.
func NewStored(cfg StoredConfig, store ports.Store, clock ports.Clock, l *Limits, log *slog.Logger) *Stored {
	first := min(cfg.Trial, cfg.Funded)
	if first <= 0 {
		first = max(cfg.Trial, cfg.Funded)
	}
	if first <= 0 && cfg.Scarce == nil {
		return nil
	}
	if first <= 0 {
		first = 1 << 62
	}
	s := &Stored{cfg: cfg, clock: clock, shared: l.agents.store, log: log, first: int64(first),
		store:  ports.Narrow(store, func(tx ports.Tx) storedRepos { return tx }),
		agents: cache.New(cache.Bounds[string, *storedBy]{Most: storedAgents, Accessed: storedAfter})}
	if s.shared != nil {
		s.first = first.Part()
	}
	return s
}

// storedBy is what one agent stored on one day.
type storedBy struct {
	mu      sync.Mutex
	day     int64
	used    int64           // bytes, by this process
	granted int64           // of them, what needs no question
	limit   ratelimit.Daily // of its tier; 0: unlimited
	trial   bool            // its tier
	readAt  time.Time       // when the tier was read; zero: not on this day
	full    bool            // the shared state has no part left
	noted   bool            // its first refusal of the day was logged
	asking  bool            // a caller reads the tier or takes a part; the others go on meanwhile
}

// on begins another day. The caller holds the lock.
func (a *storedBy) on(day, first int64) {
	if a.day != day {
		a.day, a.used, a.granted, a.readAt, a.full, a.noted = day, 0, first, time.Time{}, false, false
	}
}

func (s *Stored) by(agentID string) *storedBy {
	a, ok := s.agents.GetIfPresent(agentID)
	if !ok {
		a, _ = s.agents.SetIfAbsent(agentID, new(storedBy))
	}
	return a
}

// Add counts bytes that were stored for an agent.
func (s *Stored) Add(agentID string, bytes int64) {
	if s == nil || agentID == "" || bytes <= 0 {
		return
	}
	day, _ := ratelimit.Day(s.clock.Now())
	a := s.by(agentID)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on(day, s.first)
	a.used += bytes
}

// Check returns account.ErrStorageLimit if the agent may store no more today.
func (s *Stored) Check(ctx context.Context, agentID string) error {
	if s == nil {
		return nil
	}
	now := s.clock.Now()
	day, left := ratelimit.Day(now)
	a := s.by(agentID)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on(day, s.first)
	scarce := s.Scarce()
	if a.asking || a.used < a.granted && !scarce {
		return nil
	}
	if err := s.readTier(ctx, a, agentID, now); err != nil {
		return err
	}
	if scarce && a.trial {
		return errScarce.After(scarceWait)
	}
	if a.limit <= 0 || a.used < a.granted {
		return nil
	}
	if a.used < int64(a.limit) && !a.full {
		s.takePart(a, agentID, day)
		if a.used < a.granted {
			return nil
		}
	}
	if !a.noted {
		a.noted = true
		s.log.Warn("an agent made the service store as much as it may today", "agent_id", agentID, "limit", int64(a.limit))
	}
	return account.ErrStorageLimit.After(left)
}

// Over reports whether an agent of a known tier has stored what it may, by what this process has counted: it waits
// for nothing, for connections through the gateway.
func (s *Stored) Over(agentID string, tier account.Tier) bool {
	if s == nil {
		return false
	}
	if tier == account.TrialTier && s.Scarce() {
		return true
	}
	limit := s.limitOf(tier)
	a, known := s.agents.GetIfPresent(agentID)
	if !known || limit <= 0 {
		return false
	}
	day, _ := ratelimit.Day(s.clock.Now())
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on(day, s.first)
	return a.used >= int64(limit) || a.full && a.limit == limit && a.used >= a.granted
}

// Left returns how many bytes an agent of a known tier may make the service store on a UTC day, and how many of them
// are left today by what this process has counted. limited is false without a limit.
func (s *Stored) Left(agentID string, tier account.Tier) (limit, left int64, limited bool) {
	if s == nil || s.limitOf(tier) <= 0 {
		return 0, 0, false
	}
	limit = int64(s.limitOf(tier))
	if s.Over(agentID, tier) {
		return limit, 0, true
	}
	a, known := s.agents.GetIfPresent(agentID)
	if !known {
		return limit, limit, true
	}
	day, _ := ratelimit.Day(s.clock.Now())
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on(day, s.first)
	return limit, max(limit-a.used, 0), true
}

func (s *Stored) limitOf(tier account.Tier) ratelimit.Daily {
	if tier == account.TrialTier {
		return s.cfg.Trial
	}
	return s.cfg.Funded
}

// readTier reads the tier of an agent, unless it is known, and the limit that follows. It releases the lock meanwhile.
func (s *Stored) readTier(ctx context.Context, a *storedBy, agentID string, now time.Time) (err error) {
	if since := now.Sub(a.readAt); since >= 0 && since < tierEvery {
		return nil
	}
	var tier account.Tier
	a.unlocked(func() {
		err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx storedRepos) error {
			agent, err := tx.Agents().Get(ctx, agentID)
			if err != nil {
				return err
			}
			w, err := tx.Ledger().Wallet(ctx, agentID)
			tier = agent.Tier(w.Credited(), s.cfg.FundedFrom)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("read the tier of an agent: %w", err)
	}
	if limit := s.limitOf(tier); limit != a.limit {
		a.limit, a.full = limit, false
	}
	a.readAt, a.trial = now, tier == account.TrialTier
	return nil
}

// errScarce refuses what an account on trial would store, so that the others go on.
var errScarce = account.ErrStorageLimit.Msgf("the service has little space left and stores nothing more for accounts " +
	"on trial; wait for the seconds in Retry-After, or recharge")

// Scarce reports whether the space of the database is about to end. It looks each time, which is a call of
// the system: a second of many writers takes more than what is left.
func (s *Stored) Scarce() bool {
	if s == nil || s.cfg.Scarce == nil {
		return false
	}
	scarce, err := s.cfg.Scarce()
	if err != nil {
		s.log.Warn("the space of the database is not known", "err", err)
		return s.scarce.Load()
	}
	if s.scarce.Swap(scarce) != scarce {
		s.log.Warn("the space of the database changed", "scarce", scarce)
	}
	return scarce
}

// takePart takes what the agent has used beyond its parts, and the next one. It releases the lock meanwhile.
func (s *Stored) takePart(a *storedBy, agentID string, day int64) {
	if s.shared == nil || !s.shared.allowRequest(s.clock.Now()) {
		a.granted = min(a.used+a.limit.Part(), int64(a.limit))
		return
	}
	request, limit := a.limit.NewRequest(a.used+1-a.granted), a.limit
	var got ratelimit.Grant
	var answered bool
	a.unlocked(func() {
		got, answered = s.shared.request(fmt.Sprintf("stored:%d:%d:%s", limit, day, agentID), request)
	})
	switch {
	case a.day != day || a.limit != limit: // it is another day by now
	case !answered:
		a.granted = min(a.used+limit.Part(), int64(limit))
	default:
		a.granted = min(a.granted+int64(got.Tokens)*limit.Part(), int64(limit))
		a.full = got.Tokens < request.Tokens
	}
}

// unlocked runs f without the lock, while other callers go on.
func (a *storedBy) unlocked(f func()) {
	a.asking = true
	a.mu.Unlock()
	defer func() { // after a panic too
		a.mu.Lock()
		a.asking = false
	}()
	f()
}
