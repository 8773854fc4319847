package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/exitlogs"
	"agentproxy/app/sessions"
	"agentproxy/app/telemetry"
	"agentproxy/app/throttle"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/exitlog"
	"agentproxy/domain/health"
	"agentproxy/domain/policy"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// budgets are those of the report, of one process.
var budgets = throttle.StoredConfig{Trial: 50_000_000, Funded: 1_000_000_000, FundedFrom: account.Funding(domain.Dollar)}

func storing(w *apptest.World, cfg throttle.StoredConfig, shared ports.RateLimits) *throttle.Stored {
	limits := throttle.New(throttle.Config{}, w.Clock, shared, silentLog)
	return throttle.NewStored(cfg, w.Store, w.Clock, limits, silentLog)
}

// fill has an agent store megabytes until it is refused, and returns how many.
func fill(t *testing.T, s *throttle.Stored, agent string, most int) (megabytes int) {
	t.Helper()
	for megabytes < most {
		if err := s.Check(t.Context(), agent); err != nil {
			apptest.ErrorIs(t, err, account.ErrStorageLimit)
			return megabytes
		}
		s.Add(agent, 1_000_000)
		megabytes++
	}
	return megabytes
}

func TestWhatAnAgentStoresADay(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{FundedFrom: budgets.FundedFrom})
	s := storing(w, budgets, nil)
	trial, funded := w.Register(), w.RegisterFunded(1)
	apptest.Equal(t, "megabytes of a trial", fill(t, s, trial, 2000), 50)
	apptest.Equal(t, "megabytes of a funded account", fill(t, s, funded, 2000), 1000)
	apptest.Equal(t, "others", s.Check(t.Context(), "agt_other"), nil)

	err := s.Check(t.Context(), trial)
	var refusal *domain.Error
	if midnight := w.Clock.Now().Truncate(24 * time.Hour).Add(24 * time.Hour); !errors.As(err, &refusal) ||
		w.Clock.Now().Add(refusal.RetryAfter).Before(midnight) {
		t.Errorf("refused with %v", err)
	}
	w.Clock.Advance(refusal.RetryAfter)
	apptest.Equal(t, "megabytes on the next day", fill(t, s, trial, 2000), 50)
	_, err = w.Wallet.Adjust(t.Context(), trial, domain.Dollar, "for the test")
	apptest.OK(t, err)
	w.Clock.Advance(time.Minute)
	apptest.Equal(t, "megabytes once it paid", fill(t, s, trial, 2000), 950)
}

// The tier is read when it matters, and not again for each refusal.
func TestTheTierIsReadBeyondTheTrialsBudget(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	reads := &readsCounted{Store: w.Store}
	limits := throttle.New(throttle.Config{}, w.Clock, nil, silentLog)
	s := throttle.NewStored(budgets, reads, w.Clock, limits, silentLog)
	s.Add(agent, 49_999_999)
	apptest.OK(t, s.Check(t.Context(), agent))
	apptest.Equal(t, "reads within the budget", reads.n, 0)
	s.Add(agent, 1)
	for range 100 {
		apptest.ErrorIs(t, s.Check(t.Context(), agent), account.ErrStorageLimit)
	}
	apptest.Equal(t, "reads beyond it", reads.n, 1)
}

type readsCounted struct {
	ports.Store
	n int
}

func (r *readsCounted) View(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	r.n++
	return r.Store.View(ctx, reads, fn)
}

// Where space is about to end, accounts on trial store nothing, and the others go on.
func TestScarceSpace(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	trial, funded := w.Register(), w.RegisterFunded(1)
	scarce := true
	cfg := throttle.StoredConfig{Scarce: func() (bool, error) { return scarce, nil }}
	s := storing(w, cfg, nil)
	for range 10 {
		err := s.Check(t.Context(), trial)
		apptest.ErrorIs(t, err, account.ErrStorageLimit)
		apptest.Equal(t, "wait", err.(*domain.Error).RetryAfter, time.Minute)
		apptest.OK(t, s.Check(t.Context(), funded))
	}
	apptest.Equal(t, "a trial is over", s.Over(trial, account.TrialTier), true)
	apptest.Equal(t, "another is", s.Over(funded, account.FundedTier), false)
	visitors := accounts.Visitors{Accounts: w.Accounts, Limits: w.Limits}
	w.Limits.Stored = s
	_, err := visitors.Admit(t.Context(), accounts.Visitor{Addr: netip.MustParseAddr("192.0.2.1")})
	apptest.ErrorIs(t, err, domain.ErrUnavailable)
	scarce = false
	apptest.OK(t, s.Check(t.Context(), trial))
	_, err = visitors.Admit(t.Context(), accounts.Visitor{Addr: netip.MustParseAddr("192.0.2.1")})
	apptest.OK(t, err)
}

func TestNoBudgets(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	none := storing(w, throttle.StoredConfig{}, nil)
	none.Add(agent, 1<<50)
	apptest.OK(t, none.Check(t.Context(), agent))
	apptest.Equal(t, "over without a budget", none.Over(agent, account.TrialTier), false)
	if none.Count(w.Store) != ports.Store(w.Store) || none.CountQueue(nil) != nil {
		t.Error("without budgets something is counted")
	}
	fundedAlone := storing(w, throttle.StoredConfig{Funded: 1_000_000}, nil)
	apptest.Equal(t, "megabytes of an unlimited trial", fill(t, fundedAlone, agent, 30), 30)
	trialAlone := storing(w, throttle.StoredConfig{Trial: 2_000_000}, nil)
	apptest.Equal(t, "megabytes of a limited one", fill(t, trialAlone, agent, 30), 2)
	apptest.Equal(t, "over as a trial", trialAlone.Over(agent, account.TrialTier), true)
	apptest.Equal(t, "over as a funded account", trialAlone.Over(agent, account.FundedTier), false)
}

// Replicas share a budget: each uses a sixteenth without a question, and they ask once for each further one.
func TestABudgetOverReplicas(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	store := fake.NewRateLimits(w.Clock)
	agent := w.Register()
	sum := 0
	for range 4 {
		s := storing(w, budgets, store)
		sum += fill(t, s, agent, 2000)
		apptest.Equal(t, "over", s.Over(agent, account.TrialTier), true)
	}
	if sum < 50 || sum > 50+4*4 {
		t.Errorf("%d MB over four replicas", sum)
	}
	if store.Takes() > 30 {
		t.Errorf("%d questions", store.Takes())
	}
	takes := store.Takes()
	few := storing(w, budgets, store)
	few.Add(w.Register(), 3_000_000)
	apptest.Equal(t, "questions of an agent that stores little", store.Takes()-takes, 0)

	store.Fail(errors.New("no server"))
	alone := storing(w, budgets, store)
	apptest.Equal(t, "megabytes while nothing is shared", fill(t, alone, w.Register(), 2000), 50)
}

func TestABudgetIsForManyAtOnce(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	s := storing(w, budgets, fake.NewRateLimits(w.Clock))
	agent := w.Register()
	apptest.Concurrently(50, func(int) {
		for range 40 {
			if s.Check(t.Context(), agent) == nil {
				s.Add(agent, 100_000)
			}
		}
	})
	apptest.Equal(t, "refused in the end", fill(t, s, agent, 2000), 0)
}

// What is counted is about what the database grows by, by each door of the report.
func TestWhatIsCountedIsWhatIsStored(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{Exits: 4000, TrialBalance: 1000 * domain.Dollar, System: true})
	if w.Postgres() {
		t.Skip("the growth of a file is measured")
	}
	agent := w.RegisterCredentials().Agent.ID
	ctx := ports.WithAgent(t.Context(), agent)
	r := rand.New(rand.NewPCG(1, 2))
	s := storing(w, budgets, nil)
	w.Store.Store = s.Count(w.Store.Store)
	v := w.Buy(agent, apptest.Local)
	hooked := w.RegisterWithWebhook()
	theirs := w.Buy(hooked, apptest.Local)
	for _, door := range []struct {
		name, agent string
		write       func()
	}{
		{"reports", agent, func() {
			events := make([]telemetry.ReportedEvent, 1000)
			for i := range events {
				events[i] = telemetry.ReportedEvent{SessionID: v.ID, Report: health.Report{Type: "timeout",
					TargetHost: fmt.Sprintf("host%d.example.com", i), ErrorMessage: noise(r, 1000)}}
			}
			_, err := w.Telemetry.Batch(ctx, agent, events)
			apptest.OK(t, err)
		}},
		{"policies", agent, func() {
			s := w.Buy(agent, apptest.Local)
			own := policy.Own{}
			for n := range 1000 {
				own.Deny = append(own.Deny, fmt.Sprintf("%s.%d.example.com", noise(r, 60), n))
			}
			_, err := w.Policies.Put(ctx, agent, s.ID, own)
			apptest.OK(t, err)
		}},
		{"workers", agent, func() {
			s := w.Buy(agent, apptest.Local)
			names := make([]string, 1000)
			for n := range names {
				names[n] = fmt.Sprint("w", n)
			}
			_, _, err := w.Workers.Create(ctx, workers.Create{AgentID: agent, SessionID: s.ID, Names: names})
			apptest.OK(t, err)
		}},
		{"events for a webhook", hooked, func() {
			for range 100 {
				_, err := w.Sessions.Rotate(ctx, sessions.Rotate{AgentID: hooked, SessionID: theirs.ID})
				apptest.OK(t, err)
			}
		}},
		{"sessions", agent, func() {
			for range 100 {
				end(t, w, agent, w.Buy(agent, apptest.Local).ID)
			}
		}},
	} {
		before, counted := size(t, w), s.Used(door.agent)
		for range 10 {
			door.write()
		}
		grown := size(t, w) - before
		used := s.Used(door.agent) - counted
		t.Logf("%s: the file grew by %d, %d were counted", door.name, grown, used)
		if used < grown*9/10 || used > grown*2 {
			t.Errorf("%s: the file grew by %d, %d were counted", door.name, grown, used)
		}
	}
}

// noise returns letters that no compression makes fewer of.
func noise(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return string(b)
}

func end(t *testing.T, w *apptest.World, agent, id string) {
	t.Helper()
	_, err := w.Sessions.Terminate(t.Context(), agent, id)
	apptest.OK(t, err)
}

// size returns the size of a database's file, with what is in its log alone.
func size(t *testing.T, w *apptest.World) (bytes int64) {
	t.Helper()
	_, err := fmt.Sscan(w.Column("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")[0], &bytes)
	apptest.OK(t, err)
	return bytes
}

// A record of the exit log is its agent's, in whatever unit it is stored.
func TestRecordsOfTheExitLogAreCounted(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	s := storing(w, budgets, nil)
	w.Store.Store = s.Count(w.Store.Store)
	log := exitlogs.NewLog(exitlogs.Config{Days: 90}, w.Store, w.Clock, w.IDs)
	for i := range 30 {
		log.Closed(log.Opened(&exitlog.Connection{Agent: fmt.Sprint("agt_", i%3), Opened: w.Clock.Now()}), 1, exitlog.Finished,
			w.Clock.Now())
	}
	apptest.OK(t, log.Flush(t.Context()))
	for i := range 3 {
		apptest.Equal(t, "bytes of an agent", s.Used(fmt.Sprint("agt_", i)), 10*109)
	}
}
