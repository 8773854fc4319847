package route

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/gateway/lease"
	"agentproxy/domain/policy"
	"agentproxy/domain/traffic"
)

func cacheOf(size int) *Cache {
	leases := lease.NewRenewer(nil, lease.Config{Report: time.Second, IdleGive: time.Second}, lease.Counters{}, nil, nil)
	return NewCache(nil, nil, leases, size, time.Second, time.Now)
}

func sessionID(n int) string { return fmt.Sprintf("sess_%020d", n) }

// The least recently used entry is evicted first, and none that is in use.
func TestEviction(t *testing.T) {
	t.Parallel()
	c := cacheOf(2)
	c.Add(sessionID(1), "p").Unpin()
	c.Add(sessionID(2), "p").Unpin()
	c.Pin(sessionID(1)).Unpin()
	used := c.Add(sessionID(3), "p")
	if c.Len() != 2 || c.entryOf(sessionID(2)) != nil {
		t.Errorf("%d entries are left, want 1 and 3", c.Len())
	}
	c.Pin(sessionID(1)) // stays pinned
	c.Add(sessionID(4), "p").Unpin()
	if c.entryOf(sessionID(1)) == nil || c.entryOf(sessionID(3)) != used {
		t.Error("an entry in use was evicted")
	}
	used.Unpin()
	c.Add(sessionID(5), "p").Unpin()
	if c.entryOf(sessionID(3)) != nil {
		t.Error("an entry stays after its last use")
	}
}

// The end of a trial is no change of its session, so its route is read again now and then.
func TestARouteOfATrialIsReadAgain(t *testing.T) {
	t.Parallel()
	e := &Entry{}
	e.store(traffic.Route{}, 0)
	if e.current() == nil || e.route.Load().until != 0 {
		t.Error("a route without a trial has an end")
	}
	e.store(traffic.Route{Trial: true}, 0)
	if e.current() == nil {
		t.Error("a route of a trial is not used")
	}
	e.route.Load().until = 1
	if e.current() != nil {
		t.Error("a route of a trial is used for ever")
	}
}

func BenchmarkPin(b *testing.B) {
	const size = 100_000
	c := cacheOf(size)
	ids := make([]string, size)
	for i := range ids {
		ids[i] = sessionID(i)
		c.Add(ids[i], "p").Unpin()
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i += 7919 {
			c.Pin(ids[i%size]).Unpin()
		}
	})
}

// setOf returns rules that take about a number of kilobytes.
func setOf(t *testing.T, n, kilobytes int) *policy.Rules {
	t.Helper()
	var b policy.Builder
	for i := range kilobytes * 4 {
		if err := b.Deny(fmt.Sprintf("%s.%s.%s.r%d-%d.example.com", letters, letters, letters, n, i)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Rules()
}

var letters = strings.Repeat("a", 60)

// Entries are bounded by the bytes of their rules too, of which equal ones count once. A connection that stays on
// the oldest entry keeps no others.
func TestRulesAreBoundedByTheirBytes(t *testing.T) {
	t.Parallel()
	c := cacheOf(100_000)
	add := func(n int, rules *policy.Rules) {
		e := c.Add(sessionID(n), "p")
		c.hold(e, rules)
		e.Unpin()
	}
	shared := setOf(t, 0, 1000)
	for n := range 1000 {
		add(n, shared)
	}
	if c.Len() != 1000 || c.ruleBytes != shared.Bytes() {
		t.Errorf("%d entries with equal rules take %d bytes, want %d", c.Len(), c.ruleBytes, shared.Bytes())
	}
	held := c.Add(sessionID(5000), "p")
	c.hold(held, setOf(t, 5000, 1000))
	for n := range 150 {
		add(6000+n, setOf(t, n, 1000))
	}
	if c.ruleBytes > maxRuleBytes || c.ruleBytes < maxRuleBytes/2 {
		t.Errorf("rules take %d bytes, want %d at most", c.ruleBytes, maxRuleBytes)
	}
	if c.entryOf(sessionID(5000)) != held || c.entryOf(sessionID(6149)) == nil || c.entryOf(sessionID(6000)) != nil {
		t.Error("another entry was removed than the oldest unused one")
	}
	held.Unpin()
	for _, e := range c.all() {
		c.hold(e, nil)
	}
	if c.ruleBytes != 0 || len(c.sets) != 0 {
		t.Errorf("%d bytes of %d sets are left", c.ruleBytes, len(c.sets))
	}
}
