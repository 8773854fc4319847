package gateway

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/gateway/refusal"
)

// Counting is part of every request, so it must not allocate.
func TestCountingAllocatesNothing(t *testing.T) {
	m := New(Config{}, Deps{}).metrics
	for name, event := range map[string]func(){
		"a request":     func() { m.done(viaConnect, completed) },
		"a refusal":     func() { m.refused(viaSOCKS, refusal.ConnectTimeout) },
		"unknown codes": func() { m.refused(viaHTTP, &refusal.Refusal{}) },
		"a dial":        func() { m.exits.dialled(m.exits.from(netip.MustParseAddr("192.0.2.1")), time.Second) },
		"a failed dial": func() { m.exits.through("unknown").failed.Inc() },
	} {
		if n := testing.AllocsPerRun(1000, event); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// The number of series does not depend on what is asked for, and is bounded whatever is configured.
func TestExitsHaveABoundedNumberOfSeries(t *testing.T) {
	for own, want := range map[int]int{0: 6, 3: 12, maxExitSeries: 6 + 2*maxExitSeries, maxExitSeries + 1: 6} {
		var exits []netip.Addr
		for i := range own {
			exits = append(exits, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
		}
		m := newExitMetrics(exits, []string{"seller"})
		for i := range 100 {
			m.from(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)})).ok.Inc()
			m.through(fmt.Sprint("seller", i)).failed.Inc()
		}
		ch := make(chan prometheus.Metric, 1000)
		m.dials.Collect(ch)
		if len(ch) != want {
			t.Errorf("%d exits have %d series, want %d", own, len(ch), want)
		}
	}
}

func BenchmarkCounting(b *testing.B) {
	m := New(Config{}, Deps{}).metrics
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.done(viaHTTP, completed)
		}
	})
}
