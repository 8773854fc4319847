package lease

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func counters() Counters {
	return Counters{Up: prometheus.NewCounter(prometheus.CounterOpts{Name: "up"}), Down: prometheus.NewCounter(prometheus.CounterOpts{Name: "down"}),
		Lost: prometheus.NewCounter(prometheus.CounterOpts{Name: "lost"})}
}

// Bytes are counted with every write, so counting must not allocate.
func TestCountingBytesAllocatesNothing(t *testing.T) {
	c := counters()
	if n := testing.AllocsPerRun(1000, func() { c.add(1<<40, 1<<40) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCountBytes(b *testing.B) {
	c := counters()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.add(0, 1<<14)
		}
	})
}
