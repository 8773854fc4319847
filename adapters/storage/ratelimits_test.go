package storage_test

import (
	"context"
	"testing"
	"time"

	"agentproxy/domain/ratelimit"
	"agentproxy/test/contract"
	"agentproxy/test/pg"
)

func TestRateLimitsKeepTheContract(t *testing.T) {
	t.Parallel()
	contract.RateLimits(t, func(t *testing.T) contract.LimitWorld {
		st := openPostgres(t)
		return contract.LimitWorld{RateLimits: st.RateLimits(),
			Age: func(key string, by time.Duration) {
				_, err := st.Pool().Exec(t.Context(), "UPDATE rate_limits SET tat = tat - $1 WHERE key = $2", by.Microseconds(), key)
				if err != nil {
					t.Fatal(err)
				}
			},
			Keys: func() (n int) {
				if err := st.Pool().QueryRow(t.Context(), "SELECT COUNT(*) FROM rate_limits").Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}}
	})
}

// Nor does a purge remove more where the planner would run its selection for each row.
func TestAPurgeOfLimitsIsBoundedByAnyPlan(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	for _, setting := range []string{"enable_hashjoin", "enable_mergejoin", "enable_hashagg", "enable_sort", "enable_material"} {
		url = pg.With(url, setting, "off")
	}
	st := openURL(t, url)
	_, err := st.Pool().Exec(t.Context(), "INSERT INTO rate_limits (key, tat, took) SELECT 'agent:' || n, 0, 0 FROM generate_series(1, 5) n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{3, 2, 0} {
		if n, err := st.RateLimits().Purge(t.Context(), 3); err != nil || n != want {
			t.Fatalf("purged %d, %v, want %d", n, err, want)
		}
	}
}

func TestOneProcessSharesNoLimits(t *testing.T) {
	if openStore(t).RateLimits() != nil {
		t.Error("SQLite shares limits")
	}
}

// A take that had to wait goes by a time that is past. It must not give back what
// was taken meanwhile.
func TestATakeThatWaitedGivesNothingBack(t *testing.T) {
	st := openPostgres(t)
	ask := ratelimit.Limit{PerMinute: 600}.NewRequest(630)
	take := func() ratelimit.Grant {
		g, err := st.RateLimits().Take(t.Context(), "agent:a", ask)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	first := take()
	tx, err := st.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), "SELECT 1 FROM rate_limits FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	late := make(chan ratelimit.Grant)
	go func() {
		g, _ := st.RateLimits().Take(context.Background(), "agent:a", ask)
		late <- g
	}()
	// Five tokens are refilled while it waits.
	until(t, st, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
		AND wait_event_type = 'Lock' AND query_start < clock_timestamp() - interval '500 ms')`)
	// Tokens that were refilled meanwhile are taken by a caller that did not wait.
	if _, err := tx.Exec(t.Context(), "UPDATE rate_limits SET tat = tat + 5 * 100000"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	given := first.Tokens + 5 + (<-late).Tokens + take().Tokens
	if most := 630 + int(take().Now.Sub(first.Now)/ask.Interval); given > most {
		t.Errorf("%d tokens were given, want at most %d", given, most)
	}
}
