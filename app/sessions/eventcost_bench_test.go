package sessions_test

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/test/apptest"
)

// BenchmarkEventOfAPurchase has 32 callers of 16 agents buy, in turns with and without the row of the event, and reports
// the medians of what a purchase with it takes against one without: of the processor, and of the clock.
func BenchmarkEventOfAPurchase(b *testing.B) {
	const callers, agents, each = 32, 16, 20
	w := apptest.Open(b, apptest.Options{SessionLimit: 1 << 20, Exits: 1 << 20})
	silent := apptest.NewUseCases(apptest.Dependencies{Store: quiet{w.Store}, Clock: w.Clock, IDs: w.IDs, Secrets: w.Secrets,
		Catalog: w.Catalog, Hub: w.Hub, Limits: w.Limits, SessionLimit: 1 << 20, Log: slog.New(slog.DiscardHandler)}).Sessions
	var of []string
	for range agents {
		of = append(of, w.RegisterFunded(1_000_000))
	}
	ways := [2]*sessions.Service{w.Sessions, silent}
	var clock, processor [2]time.Duration
	var clocks, processors []float64 // of each round
	var without time.Duration
	var n atomic.Int64
	for b.Loop() {
		for i := range ways {
			i = (i + len(clocks)) % 2 // each follows each other
			began, before := time.Now(), usedProcessor(b)
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for range each {
						agent := of[n.Add(1)%agents]
						_, err := ways[i].Create(b.Context(), sessions.Create{AgentID: agent, Form: apptest.Form(apptest.Local)})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			clock[i], processor[i] = time.Since(began), usedProcessor(b)-before
		}
		clocks = append(clocks, float64(clock[0])/float64(clock[1]))
		processors = append(processors, float64(processor[0])/float64(processor[1]))
		without += processor[1]
	}
	slices.Sort(clocks)
	slices.Sort(processors)
	b.ReportMetric(processors[len(processors)/2], "processor")
	b.ReportMetric(clocks[len(clocks)/2], "clock")
	b.ReportMetric(float64(without.Microseconds())/float64(n.Load()/2), "µs-without")
}

func usedProcessor(b *testing.B) time.Duration {
	var u syscall.Rusage
	apptest.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
