package procurement_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/domain/procurement"
)

func TestACounterThatBeginsAnewCountsOn(t *testing.T) {
	type reading struct{ minute, bytes int64 }
	for _, c := range []struct {
		claim    string
		lag      time.Duration
		readings []reading
		want     int64
		base     int64
	}{
		{"one that grows is what was used", 0, []reading{{1, 100}, {2, 100}, {3, 900}}, 900, 0},
		{"one that begins anew counts on", 0, []reading{{1, 900}, {2, 10}, {3, 890}}, 1790, 900},
		{"again and again", 0, []reading{{1, 900}, {2, 10}, {3, 890}, {4, 5}, {5, 6}, {6, 7}}, 1797, 1790},
		{"and stays where it was meanwhile", 0, []reading{{1, 900}, {2, 10}, {3, 10}, {4, 10}}, 910, 900},
		{"one old reading adds nothing", 0, []reading{{1, 900}, {2, 850}, {3, 905}, {4, 880}, {5, 910}}, 910, 0},
		{"one reading, twice, is one", 0, []reading{{1, 900}, {2, 850}, {2, 850}, {3, 905}}, 905, 0},
		{"what fell waits for another reading", 0, []reading{{1, 900}, {2, 10}}, 900, 0},
		{"old readings within the lag add nothing", 15 * time.Minute, []reading{{1, 900}, {2, 850}, {3, 850}, {16, 890}, {17, 900}}, 900, 0},
		{"those after it do", 15 * time.Minute, []reading{{1, 900}, {2, 10}, {3, 20}, {16, 30}, {17, 40}}, 940, 900},
		{"nothing at all is no beginning", 0, []reading{{1, 900}, {2, 0}, {3, 0}, {30, 0}, {31, 905}}, 905, 0},
		{"it is one once it grows", 0, []reading{{1, 900}, {2, 0}, {3, 0}, {30, 5}}, 905, 900},
		{"the largest numbers stay in their bounds", 0, []reading{{1, 900}, {2, 1}, {3, 2}, {4, math.MaxInt64}}, math.MaxInt64, 900},
	} {
		t.Run(c.claim, func(t *testing.T) {
			var counter procurement.Counter
			var used int64
			for _, r := range c.readings {
				u := procurement.Usage{Bytes: r.bytes, AsOf: time.Unix(60*r.minute, 0)}
				counter, used = counter.Read(u, used, c.lag)
			}
			if used != c.want || counter.Base != c.base {
				t.Errorf("used %d from %d, want %d from %d", used, counter.Base, c.want, c.base)
			}
		})
	}
}

// A counter that begins anew at any time, and shows old values for as long as its lag, is never taken for more than what
// passed. What passed is booked in full but for what no reading showed: the end of one count, and a count that is past the
// one before when it is read first.
func TestNoReadingIsTakenTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lag := time.Duration(rapid.IntRange(0, 5).Draw(rt, "lag in minutes")) * time.Minute
		now := time.Unix(0, 0)
		type shown struct {
			at    time.Time
			bytes int64
		}
		var counter procurement.Counter
		var used, passed, unseen int64
		var count, seen int64 // of the provider's counter; its part that a reading showed
		history := []shown{{now, 0}}
		read := func(u procurement.Usage) {
			was := used
			for range rapid.IntRange(1, 2).Draw(rt, "times") { // twice: another process has the same reading
				counter, used = counter.Read(u, used, lag)
			}
			if used < was || used > passed {
				rt.Fatalf("%d used after %d, and %d passed", used, was, passed)
			}
		}
		settle := func() { // readings that are not old, until one is past every doubt
			for range 3 {
				now = now.Add(max(lag, procurement.RereadCounterAfter))
				history = append(history, shown{now, count})
				read(procurement.Usage{Bytes: count, AsOf: now})
			}
			seen = count
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {},
			"pass": func(*rapid.T) {
				n := rapid.Int64Range(1, 1000).Draw(rt, "bytes")
				count, passed = count+n, passed+n
				now = now.Add(time.Second)
				history = append(history, shown{now, count})
			},
			"read": func(*rapid.T) {
				now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour}).Draw(rt, "after"))
				read(procurement.Usage{Bytes: count, AsOf: now})
			},
			"old": func(*rapid.T) { // within the lag
				at := now.Add(-time.Duration(rapid.Int64Range(0, int64(lag)).Draw(rt, "age")))
				old := history[0]
				for _, h := range history {
					if !h.at.After(at) {
						old = h
					}
				}
				read(procurement.Usage{Bytes: old.bytes, AsOf: now})
			},
			"settled": func(*rapid.T) { settle() },
			"anew": func(*rapid.T) {
				settle() // what was not read by now is lost, and what is shown long after is not old
				unseen += count - seen
				now = now.Add(max(lag, procurement.RereadCounterAfter))
				was := count
				count, seen = rapid.Int64Range(1, 1000).Draw(rt, "bytes"), 0
				passed += count
				history = append(history, shown{now, count})
				if count >= was {
					unseen += was
				}
				settle()
			},
		})
		settle()
		if used != passed-unseen {
			rt.Fatalf("%d used, %d passed of which %d were not to be seen", used, passed, unseen)
		}
	})
}
