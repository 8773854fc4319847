package health_test

import (
	"fmt"
	"testing"
	"time"

	"agentproxy/domain/health"

	"pgregory.net/rapid"
)

func seen(host string, after time.Duration) health.Event {
	return health.Event{Type: health.Timeout, Host: host, At: start.Add(after)}
}

func TestRingTakesTheNearestOfTheHost(t *testing.T) {
	var r health.Ring
	r.Add(seen("a.test", 0))
	r.Add(seen("b.test", 900*time.Millisecond))
	r.Add(seen("a.test", time.Second))
	r.Add(seen("a.test", 3*time.Second))
	take := func(host string, after, want time.Duration) {
		t.Helper()
		e, ok := r.Take(host, start.Add(after))
		if !ok || e != seen(host, want) {
			t.Errorf("took %+v %v, want that of %v", e, ok, want)
		}
	}
	take("a.test", 1200*time.Millisecond, time.Second)
	take("a.test", 1500*time.Millisecond, 0) // both are 1.5 s away: the older
	take("a.test", time.Second, 3*time.Second)
	if _, ok := r.Take("a.test", start.Add(3*time.Second)); ok {
		t.Error("an event was taken twice")
	}
	if _, ok := r.Take("b.test", start.Add(2901*time.Millisecond)); ok {
		t.Error("an event was taken after more than two seconds")
	}
	take("b.test", 2900*time.Millisecond, 900*time.Millisecond)
	if r.Len() != 0 {
		t.Errorf("%d left, want 0", r.Len())
	}
}

func TestAReportWithoutAHostTakesNothing(t *testing.T) {
	var r health.Ring
	r.Add(seen("", 0))
	if _, ok := r.Take("", start); ok {
		t.Error("an event without a host was taken")
	}
}

func TestAFullRingGivesUpItsOldest(t *testing.T) {
	var r health.Ring
	for i := range 32 {
		if e, full := r.Add(seen(fmt.Sprint(i), 0)); full {
			t.Fatalf("gave up %+v with %d events", e, i)
		}
	}
	if e, full := r.Add(seen("new", 0)); !full || e.Host != "0" {
		t.Errorf("gave up %+v %v, want the oldest", e, full)
	}
	if r.Len() != 32 {
		t.Errorf("%d wait, want 32", r.Len())
	}
}

func TestEveryObservedEventLeavesTheRingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r health.Ring
		now, added := start, 0
		left := map[health.Event]bool{}
		leave := func(e health.Event) {
			if left[e] {
				t.Fatalf("%+v left twice", e)
			}
			left[e] = true
		}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "gap")) * time.Millisecond)
			host := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "host")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				if e, ok := r.Take(host, now); ok {
					if e.Host != host || now.Sub(e.At) > 2*time.Second {
						t.Fatalf("took %+v for %s at %v", e, host, now)
					}
					leave(e)
				}
			case 1:
				for _, e := range r.Expire(now, nil) {
					if now.Sub(e.At) <= 2*time.Second {
						t.Fatalf("%+v expired at %v", e, now)
					}
					leave(e)
				}
			default:
				added++
				if e, full := r.Add(health.Event{Type: health.Timeout, Host: host, At: now, LatencyMS: added}); full {
					leave(e)
				}
			}
		}
		for _, e := range r.Expire(now.Add(time.Hour), nil) {
			leave(e)
		}
		if len(left) != added || r.Len() != 0 {
			t.Fatalf("%d of %d events left, %d remain", len(left), added, r.Len())
		}
	})
}
