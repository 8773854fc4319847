package gateway

import (
	"testing"
	"time"

	"agentproxy/adapters/gateway/refusal"
)

// Counting is part of every request, so it must not allocate.
func TestCountingAllocatesNothing(t *testing.T) {
	m := New(Config{}, Deps{}).metrics
	for name, event := range map[string]func(){
		"a request":     func() { m.done(viaConnect, completed) },
		"a refusal":     func() { m.refused(viaSOCKS, refusal.ConnectTimeout) },
		"unknown codes": func() { m.refused(viaHTTP, &refusal.Refusal{}) },
		"a dial":        func() { m.dialled(time.Second) },
	} {
		if n := testing.AllocsPerRun(1000, event); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
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
