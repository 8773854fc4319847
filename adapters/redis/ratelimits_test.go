package redis_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"

	"agentproxy/adapters/redis"
	"agentproxy/app/throttle"
	"agentproxy/domain/ratelimit"
	"agentproxy/test/contract"
	"agentproxy/test/fake"
	"agentproxy/test/redistest"
)

func open(t *testing.T, server *redistest.Server) *redis.RateLimits {
	t.Helper()
	r, err := redis.NewRateLimits(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestRateLimitsKeepTheContract(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	do := func(t *testing.T, command string, args ...any) any {
		t.Helper()
		conn, err := redigo.Dial("unix", strings.TrimPrefix(server.URL(), "unix://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		reply, err := conn.Do(command, args...)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	contract.RateLimits(t, func(t *testing.T) contract.LimitWorld {
		do(t, "FLUSHALL")
		return contract.LimitWorld{RateLimits: open(t, server),
			Age: func(key string, by time.Duration) {
				do(t, "ZINCRBY", "agentproxy:ratelimits", -by.Microseconds(), key)
			},
			Keys: func() int { return int(do(t, "ZCARD", "agentproxy:ratelimits").(int64)) }}
	})
}

// Replicas together admit exactly a limit below 60 a minute, and what time refills.
func TestReplicasAdmitTheLimitTogether(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := &fake.TimedLimits{RateLimits: open(t, server)}
	var replicas []*throttle.Limits
	for range 3 {
		replicas = append(replicas, throttle.New(throttle.Config{}, fake.NewClock(), store, slog.New(slog.DiscardHandler)))
	}
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range 150 {
		wg.Go(func() {
			if replicas[i%3].Take("a", 30).Allowed {
				admitted.Add(1)
			}
		})
	}
	wg.Wait()
	if late := int64(store.Refilled(30)); admitted.Load() < 30 || admitted.Load() > 30+late {
		t.Errorf("%d calls were admitted, want 30, and %d for the time it took", admitted.Load(), late)
	}
}

func TestAServerThatIsAwayLeavesEachReplicaAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var text bytes.Buffer
	store := &fake.TimedLimits{RateLimits: open(t, server)}
	limits := throttle.New(throttle.Config{}, fake.NewClock(), store, slog.New(slog.NewTextHandler(&text, nil)))
	if !limits.Take("a", 30).Allowed {
		t.Fatal("the first call is refused")
	}
	server.Stop()
	admitted := 0
	for range 100 {
		if limits.Take("b", 30).Allowed {
			admitted++
		}
	}
	if admitted != 30 || !strings.Contains(text.String(), "each process alone") {
		t.Errorf("%d calls were admitted; the log has: %s", admitted, text.String())
	}
	server.Run()
	if _, err := open(t, server).Take(t.Context(), "agent:a", ratelimit.Limit{PerMinute: 30}.NewRequest(1)); err != nil {
		t.Errorf("after the start: %v", err)
	}
}

func TestCheckRefusesWhatIsNoServer(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "localhost:6379", "http://secret@host", "redis://%zz:secret@host", "redis://host/notanumber",
		"redis://host/-1", "redis://host/1/2", "redis://host?db=1", "redis:secret", "redis://", "unix://", "unix:///s?db=x"} {
		if err := redis.Check(url); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", url, err)
		}
		if _, err := redis.NewRateLimits(url); err == nil {
			t.Errorf("%q is accepted", url)
		}
	}
	for _, url := range []string{"redis://host", "rediss://user:secret@host:6380/2", "unix:///run/valkey.sock", "unix:///s?db=2",
		"redis://:secret@[::1]", "redis://host/"} {
		if err := redis.Check(url); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
}
