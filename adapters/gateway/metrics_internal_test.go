package gateway

import (
	"log/slog"
	"testing"
	"time"

	"agentproxy/adapters/gateway/refusal"
)

// TestCountingTakesNoMemory holds what is on the way of requests and bytes.
func TestCountingTakesNoMemory(t *testing.T) {
	m := New(Config{}, nil, slog.New(slog.DiscardHandler)).metrics
	for name, event := range map[string]func(){
		"a request":     func() { m.done(viaConnect, completed) },
		"a refusal":     func() { m.refused(viaSOCKS, refusal.ConnectTimeout) },
		"unknown codes": func() { m.refused(viaHTTP, &refusal.Refusal{}) },
		"bytes":         func() { m.moved(1<<40, 1<<40) },
		"a dial":        func() { m.dialled(time.Second) },
	} {
		if n := testing.AllocsPerRun(1000, event); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkCounting(b *testing.B) {
	m := New(Config{}, nil, slog.New(slog.DiscardHandler)).metrics
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.done(viaHTTP, completed)
			m.moved(0, 1<<14)
		}
	})
}
