package gateway_test

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"agentproxy/domain/worker"
)

// BenchmarkOpenFleet opens a tunnel for each of a thousand workers at once, moves bytes through all
// of them at the same time, and closes them; and does the same with the tunnels of sessions without
// workers, and with those of a relay that only copies. It reports the medians of the processor's
// time of a tunnel and of a megabyte, in which client, gateway and target are.
func BenchmarkOpenFleet(b *testing.B) {
	w, _ := metered(b, newCore(b), nil)
	source := newCounting(b).addr()
	fleet := w.add(1, 0, "127.0.0.2")
	w.addWorkers(fleet, loopbacks, nil)
	var workers, plain []string
	for i := range worker.MaxPerSession {
		workers = append(workers, basic(fmt.Sprintf("%s-session-w%d", user(fleet, 0), i+1), password(fleet)))
	}
	for i := range worker.MaxPerSession / 200 {
		id := w.add(2+i, 0, "127.0.0.2")
		plain = append(plain, slices.Repeat([]string{basic(user(id, 0), password(id))}, 200)...)
	}
	openAtOnce(b, map[string]func() (string, []string){
		"workers": func() (string, []string) { return w.addr, workers },
		"plain":   func() (string, []string) { return w.addr, plain },
	}, copier(b), source)
}

// openAtOnce runs the parts and the relay in turn, b.N times, and once before it measures.
func openAtOnce(b *testing.B, parts map[string]func() (addr string, as []string), relay, source string) {
	parts["relay"] = func() (string, []string) { return relay, make([]string, worker.MaxPerSession) }
	opening, moving := map[string][]float64{}, map[string][]float64{}
	for n := range b.N + 1 {
		for name, of := range parts {
			addr, as := of()
			began := processorTime(b)
			open := all(b, as, func(i int) net.Conn {
				c, err := from(fmt.Sprintf("127.0.0.%d", 30+i%10)).Dial("tcp", addr)
				if err != nil {
					b.Error(err)
					return nil
				}
				_ = c.SetDeadline(time.Now().Add(time.Minute))
				if status := (&world{t: b}).connectAs(c, as[i], source); status != 200 {
					b.Errorf("%s: status %d", name, status)
				}
				return c
			})
			opened := processorTime(b)
			const each = 1 << 20
			all(b, as, func(i int) error {
				_, _ = open[i].Write(order(0, each))
				_, err := io.CopyN(io.Discard, open[i], each)
				if err != nil {
					b.Error(err)
				}
				return err
			})
			moved := processorTime(b)
			all(b, as, func(i int) error { return open[i].Close() })
			closed := processorTime(b)
			if n > 0 {
				opening[name] = append(opening[name], float64(opened-began+closed-moved)/float64(len(as)))
				moving[name] = append(moving[name], float64(moved-opened)/float64(len(as)))
			}
		}
	}
	for name := range parts {
		slices.Sort(opening[name])
		slices.Sort(moving[name])
		b.ReportMetric(opening[name][b.N/2], name+"-ns/tunnel")
		b.ReportMetric(moving[name][b.N/2], name+"-ns/MB")
	}
}

// all runs fn for each credential at once.
func all[T any](b *testing.B, as []string, fn func(i int) T) []T {
	b.Helper()
	out := make([]T, len(as))
	var wg sync.WaitGroup
	for i := range as {
		wg.Go(func() { out[i] = fn(i) })
	}
	wg.Wait()
	return out
}
