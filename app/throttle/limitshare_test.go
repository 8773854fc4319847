package throttle_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/app/accounts"
	"agentproxy/app/maintenance"
	"agentproxy/app/throttle"
	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
	"agentproxy/test/pg"
)

var silentLog = slog.New(slog.DiscardHandler)

func sharing(clock ports.Clock, store ports.RateLimits, n int) (list []*throttle.Limits) {
	for range n {
		list = append(list, throttle.New(throttle.Config{RegistrationsPerMinute: 120}, clock, store, silentLog))
	}
	return list
}

// admitted counts how many of a burst over all replicas pass.
func admitted(calls int, take func(i int) ratelimit.Decision) int {
	var n atomic.Int32
	apptest.Concurrently(calls, func(i int) {
		if take(i).Allowed {
			n.Add(1)
		}
	})
	return int(n.Load())
}

func TestABurstOverReplicas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, over, requests int }{{30, 0, 70}, {59, 0, 120}, {60, 5, 120}, {600, 30, 160}} {
		clock := fake.NewClock()
		store := fake.NewRateLimits(clock)
		all := sharing(clock, store, 4)
		caller := accounts.Caller{AgentID: "a", PerMinute: c.limit}
		n := admitted(2*c.limit+100, func(i int) ratelimit.Decision { return all[i%4].Take(caller.AgentID, caller.PerMinute) })
		if n < c.limit || n > c.limit+c.over || store.Takes() > c.requests {
			t.Errorf("%d a minute: %d admitted with %d takes", c.limit, n, store.Takes())
		}
		requests := store.Takes()
		for i := range 1000 {
			d := all[i%4].Take(caller.AgentID, caller.PerMinute)
			if d.Allowed && n < c.limit+c.over {
				n++ // a share that came after its last caller was refused
				continue
			}
			if d.Allowed || d.Remaining != 0 || d.RetryAfter < time.Second || d.Limit != c.limit {
				t.Fatalf("%d a minute: then %+v", c.limit, d)
			}
		}
		if store.Takes() > requests+8 {
			t.Errorf("%d a minute: %d takes for calls that are refused", c.limit, store.Takes()-requests)
		}
	}
}

func TestABurstOverReplicasOnPostgreSQL(t *testing.T) {
	t.Parallel()
	st, err := storage.Open(t.Context(), storage.Config{URL: storage.URL(pg.Database(t)), MaxConns: 6})
	apptest.OK(t, err)
	defer st.Close()
	for _, limit := range []int{30, 600} {
		caller, most := accounts.Caller{AgentID: "a", PerMinute: limit}, limit
		if limit == 600 {
			caller.AgentID, most = "b", 630
		}
		store := &fake.TimedLimits{RateLimits: st.RateLimits()}
		all := sharing(fake.NewClock(), store, 2)
		n := admitted(limit+300, func(i int) ratelimit.Decision { return all[i%2].Take(caller.AgentID, caller.PerMinute) })
		if late := store.Refilled(limit); n < limit || n > most+late {
			t.Errorf("%d a minute: %d admitted, %d for the time it took", limit, n, late)
		}
	}
}

func TestRegistrationsAndChecksOverReplicas(t *testing.T) {
	t.Parallel()
	clock := fake.NewClock()
	all := sharing(clock, fake.NewRateLimits(clock), 2)
	n := admitted(30, func(i int) ratelimit.Decision { return all[i%2].TakeCheck("a") })
	apptest.Equal(t, "checks", n, 10)
	apptest.Equal(t, "another agent's check", all[0].TakeCheck("b").Allowed, true)
	n = admitted(300, func(i int) ratelimit.Decision {
		return registration(all[i%2], []string{"2001:db8::1", "2001:db8::2"}[i%2])
	})
	if n < 120 || n > 126 {
		t.Errorf("%d registrations", n)
	}
	apptest.Equal(t, "another address", registration(all[0], "192.0.2.1").Allowed, true)
	apptest.Equal(t, "an unlimited agent", all[0].Take("a", 0), ratelimit.Decision{Allowed: true})
}

// What costs more than one is taken as a whole or not at all, alone and over replicas, and what is refused costs
// nothing; what is done is taken as far as it is left.
func TestCallsThatCostMore(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		clock := fake.NewClock()
		var store ports.RateLimits
		if shared {
			store = fake.NewRateLimits(clock)
		}
		l := throttle.New(throttle.Config{}, clock, store, silentLog)
		n, last := 0, ratelimit.Decision{}
		for range 100 {
			if last = l.TakeMore("a", 600, 40); !last.Allowed {
				break
			}
			n++
		}
		if want := 15; n < want || n > want+1 || last.RetryAfter < 2*time.Second || last.RetryAfter > 5*time.Second {
			t.Errorf("shared %v: %d calls of 40, then %+v", shared, n, last)
		}
		for range 5 {
			l.TakeMore("a", 600, 40) // and takes nothing
		}
		clock.Advance(last.RetryAfter)
		if d := l.TakeMore("a", 600, 40); !d.Allowed {
			t.Errorf("shared %v: refused after the wait: %+v", shared, d)
		}
		clock.Advance(time.Minute)
		l.Take("a", 600)
		if d := l.Debit("a", 600, 550); !d.Allowed || d.Remaining > 51 || d.Remaining < 20 {
			t.Errorf("shared %v: %+v are left", shared, d)
		}
		l.Debit("a", 600, 5000)
		if d := l.Take("a", 600); d.Allowed {
			t.Errorf("shared %v: more is left: %+v", shared, d)
		}
		if d := l.TakeMore("small", 6, 40); !d.Allowed {
			t.Errorf("shared %v: a cost above the limit is never allowed: %+v", shared, d)
		}
		for i := range 30 {
			if d := l.TakeTrials("192.0.2.0/24", 40); d.Allowed != (i < 30) {
				t.Errorf("shared %v: call %d of a network: %+v", shared, i, d)
			}
		}
	}
}

func registration(l *throttle.Limits, addr string) ratelimit.Decision {
	d, _ := l.TakeRegistration(netip.MustParseAddr(addr))
	return d
}

// One /48 of the report had 1,397 accounts in 20 s, one address of each /64.
func TestRegistrationsOfNetworksAndInAll(t *testing.T) {
	t.Parallel()
	clock := fake.NewClock()
	l := throttle.New(throttle.Config{RegistrationsPerMinute: 120, NetworkRegistrations: 60, AllRegistrations: 600},
		clock, nil, silentLog)
	from := func(format string, n int) (allowed int, of string) {
		for i := range n {
			d, why := l.TakeRegistration(netip.MustParseAddr(fmt.Sprintf(format, i)))
			if d.Allowed {
				allowed++
			} else if of = why; d.RetryAfter < time.Second {
				t.Fatalf("refused with %+v", d)
			}
		}
		return allowed, of
	}
	n, of := from("2001:db8:0:%x::1", 1397)
	apptest.Equal(t, "of a /48", n, 60)
	apptest.Equal(t, "too many", of, "from this network")
	n, _ = from("192.0.2.%d", 256)
	apptest.Equal(t, "of a /24", n, 60)
	n, of = from("2001:db8:%x::1", 2000)
	apptest.Equal(t, "of many networks", n, 480)
	apptest.Equal(t, "too many", of, "at the moment")
	clock.Advance(time.Minute)
	n, _ = from("192.0.2.%d", 256)
	apptest.Equal(t, "a minute later", n, 60)
}

func TestAChangedLimitHoldsAtOnce(t *testing.T) {
	t.Parallel()
	clock := fake.NewClock()
	all := sharing(clock, fake.NewRateLimits(clock), 2)
	take := func(limit int) bool { return all[0].Take("a", limit).Allowed }
	for take(30) {
	}
	apptest.Equal(t, "raised", take(600), true)
	apptest.Equal(t, "lowered", take(30), false)
}

func TestWithoutAnAnswerEachReplicaGoesOnAlone(t *testing.T) {
	t.Parallel()
	clock := fake.NewClock()
	store := fake.NewRateLimits(clock)
	var text bytes.Buffer
	limits := throttle.New(throttle.Config{}, clock, store, slog.New(slog.NewTextHandler(&text, nil)))
	caller := accounts.Caller{AgentID: "a", PerMinute: 30}
	store.Fail(errors.New("no server"))
	apptest.Equal(t, "admitted", admitted(100, func(int) ratelimit.Decision { return limits.Take(caller.AgentID, caller.PerMinute) }), 30)
	apptest.Equal(t, "takes", store.Takes(), 1)
	clock.Advance(time.Second)
	limits.Take(caller.AgentID, caller.PerMinute)
	limits.Take("b", 30)
	apptest.Equal(t, "takes a second later", store.Takes(), 2)
	apptest.Equal(t, "lines", strings.Count(text.String(), "each process alone"), 1)
	clock.Advance(time.Minute)
	limits.Take(caller.AgentID, caller.PerMinute)
	apptest.Equal(t, "lines a minute later", strings.Count(text.String(), "each process alone"), 2)
	store.Fail(nil)
	clock.Advance(time.Second)
	requests := store.Takes()
	for range 3 {
		limits.Take(caller.AgentID, caller.PerMinute)
	}
	apptest.Equal(t, "takes when it is back", store.Takes(), requests+3)
}

func TestTidyForgetsLimits(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	store := fake.NewRateLimits(w.Clock)
	limits := sharing(w.Clock, store, 1)[0]
	passes := maintenance.New(maintenance.Config{ClientDays: 90}, w.Base(), w.Transitions, w.Traffic, w.Hub, limits)
	apptest.Concurrently(1200, func(i int) { limits.TakeRegistration(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})) })
	apptest.OK(t, passes.Purge(t.Context()))
	apptest.Equal(t, "kept", store.Keys(), 1200)
	w.Clock.Advance(5 * time.Minute)
	limits.TakeCheck("a")
	apptest.OK(t, passes.Purge(t.Context()))
	apptest.Equal(t, "kept in the end", store.Keys(), 1)
}

func BenchmarkTake(b *testing.B) {
	clock := system.Clock{}
	caller := accounts.Caller{AgentID: "a", PerMinute: accounts.MaxPerMinute}
	for name, store := range map[string]ports.RateLimits{"alone": nil, "shared": fake.NewRateLimits(clock)} {
		b.Run(name, func(b *testing.B) {
			limits := sharing(clock, store, 1)[0]
			b.ReportAllocs()
			for b.Loop() {
				limits.Take(caller.AgentID, caller.PerMinute)
			}
		})
	}
}

// What trials of a network have read takes what is left, also where that is less than its cost.
func TestTrialsPayForWhatTheyHaveRead(t *testing.T) {
	t.Parallel()
	l := throttle.New(throttle.Config{}, fake.NewClock(), nil, silentLog)
	const network = "192.0.2.0/24"
	if d := l.TakeTrials(network, 1198); !d.Allowed || d.Remaining != 2 {
		t.Fatalf("%+v", d)
	}
	l.DebitTrials(network, 3)
	if d := l.TakeTrials(network, 1); d.Allowed {
		t.Errorf("more is left: %+v", d)
	}
	l.DebitTrials("", 3) // not on trial
}
