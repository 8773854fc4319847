package contract

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// LimitWorld is a ports.RateLimits under test.
type LimitWorld struct {
	ports.RateLimits
	// Age makes the state of a key older by so much.
	Age func(key string, by time.Duration)
	// Keys counts the states that are kept.
	Keys func() int
}

// RateLimits holds a ports.RateLimits to its promises. Open returns an empty one,
// which it closes when the test ends.
func RateLimits(t *testing.T, open func(t *testing.T) LimitWorld) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, w LimitWorld)
	}{
		{"every answer is that of the arithmetic", takesAsTheArithmetic},
		{"of many takes at once the burst is given", takesAreSerial},
		{"keys do not know each other", keysAreApart},
		{"a state from before the clock was set back waits two minutes at most", clockSetBack},
		{"a burst of days is kept as one of a minute", daysAreKept},
		{"old states are purged, a number at a time, and no other", limitsArePurged},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func (w LimitWorld) take(t testing.TB, key string, request ratelimit.Request) ratelimit.Grant {
	t.Helper()
	g, err := w.Take(t.Context(), key, request)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func takesAsTheArithmetic(t *testing.T, w LimitWorld) {
	r := rand.New(rand.NewPCG(1, 2))
	var s ratelimit.State
	for i := range 200 {
		limit := ratelimit.Limit{PerMinute: []int{1, 7, 59, 60, 600, 6_000, 10_000_000}[r.IntN(7)]}
		request := limit.NewRequest(r.IntN(1 + limit.PerMinute/3))
		if i%20 == 10 {
			by := time.Duration(r.Int64N(int64(90*time.Second))) / time.Microsecond * time.Microsecond
			w.Age("agent:a", by)
			s.TAT = s.TAT.Add(-by)
		}
		g := w.take(t, "agent:a", request)
		after, want := request.TakeFrom(s, g.Now)
		if g.Tokens != want.Tokens || !g.TAT.Equal(want.TAT) {
			t.Fatalf("take %d of %+v from %v: %+v, want %+v", i, request, s.TAT, g, want)
		}
		s = after
	}
}

// takesAreSerial sorts the answers by the state that each left: every one that gave tokens follows from the one before
// it, at the store's own time.
func takesAreSerial(t *testing.T, w LimitWorld) {
	request := ratelimit.Limit{PerMinute: 30}.NewRequest(3)
	grants := make([]ratelimit.Grant, 25)
	var wg sync.WaitGroup
	for i := range grants {
		wg.Go(func() {
			var err error
			if grants[i], err = w.Take(t.Context(), "agent:a", request); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	slices.SortFunc(grants, func(a, b ratelimit.Grant) int { return a.TAT.Compare(b.TAT) })
	var s ratelimit.State
	given := 0
	for _, g := range grants {
		if g.Tokens == 0 {
			continue
		}
		given += g.Tokens
		after, want := request.TakeFrom(s, g.Now)
		if g.Tokens != want.Tokens || !g.TAT.Equal(want.TAT) {
			t.Errorf("after %d tokens: %+v, want %+v", given, g, want)
		}
		s = after
	}
	if given < 30 {
		t.Errorf("%d tokens were given, want 30 at least", given)
	}
}

// daysAreKept takes the parts of a day: what is used stays used, however far its end lies ahead.
func daysAreKept(t *testing.T, w LimitWorld) {
	day := ratelimit.Daily(160)
	for i, want := range []int{3, 12, 0} {
		if g := w.take(t, "stored:a", day.NewRequest([]int64{30, 150, 10}[i])); g.Tokens != want {
			t.Errorf("take %d gave %d parts, want %d", i, g.Tokens, want)
		}
	}
	if n, err := w.Purge(t.Context(), 10); n != 0 || err != nil {
		t.Errorf("%d states were purged, %v", n, err)
	}
	w.Age("stored:a", 12*time.Hour)
	if g := w.take(t, "stored:a", day.NewRequest(30)); g.Tokens != 1 {
		t.Errorf("half a day later %d parts were given, want 1", g.Tokens)
	}
}

func keysAreApart(t *testing.T, w LimitWorld) {
	request := ratelimit.Limit{PerMinute: 10}.NewRequest(10)
	for _, key := range []string{"agent:a", "agent:A", "agent:ä", "check:a", "registration:2001:db8::"} {
		g := w.take(t, key, request)
		if g.Tokens != 10 {
			t.Errorf("%s was given %d tokens, want 10", key, g.Tokens)
		}
		s, _ := request.TakeFrom(ratelimit.State{}, g.Now)
		again := w.take(t, key, request)
		if _, want := request.TakeFrom(s, again.Now); again.Tokens != want.Tokens {
			t.Errorf("%s was given %d tokens again, want %d", key, again.Tokens, want.Tokens)
		}
	}
}

func clockSetBack(t *testing.T, w LimitWorld) {
	request := ratelimit.Limit{PerMinute: 10}.NewRequest(1)
	w.take(t, "agent:a", request)
	w.Age("agent:a", -time.Hour)
	if g := w.take(t, "agent:a", request); g.Tokens != 0 || g.TAT.Sub(g.Now) > 2*time.Minute {
		t.Errorf("given %d, and %v to wait", g.Tokens, g.TAT.Sub(g.Now))
	}
}

func limitsArePurged(t *testing.T, w LimitWorld) {
	request := ratelimit.Limit{PerMinute: 10}.NewRequest(1)
	for i := range 5 {
		key := fmt.Sprint("registration:192.0.2.", i)
		w.take(t, key, request)
		w.Age(key, 3*time.Minute)
	}
	w.take(t, "agent:new", request)
	w.take(t, "agent:used again", request)
	w.Age("agent:used again", 3*time.Minute)
	w.take(t, "agent:used again", request)
	w.take(t, "agent:lately", request)
	w.Age("agent:lately", time.Minute)
	for _, want := range []int{3, 2, 0} {
		if n, err := w.Purge(t.Context(), 3); err != nil || n != want {
			t.Fatalf("purged %d, %v, want %d", n, err, want)
		}
	}
	if n := w.Keys(); n != 3 {
		t.Errorf("%d states are left, want 3", n)
	}
}
