package sessions_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/app/telemetry"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/test/apptest"
)

// cpu reports the processor time of the whole process for each operation.
func cpu(b *testing.B) func() {
	b.Helper()
	read := func() time.Duration {
		var u syscall.Rusage
		apptest.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start := read()
	b.ReportAllocs()
	b.ResetTimer()
	return func() {
		b.StopTimer()
		b.ReportMetric(float64((read()-start).Microseconds())/float64(b.N), "cpu-µs/op")
	}
}

// each runs fn with concurrent callers on two processors.
func each(b *testing.B, callers int, fn func(n int64) error) {
	var n atomic.Int64
	defer cpu(b)()
	if callers == 1 {
		for range b.N {
			apptest.OK(b, fn(n.Add(1)))
		}
		return
	}
	b.SetParallelism(callers / 2)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := fn(n.Add(1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

const benchAgents = 32

func benchWorld(b *testing.B) (*apptest.World, []string) {
	w := apptest.Open(b, apptest.Options{System: true})
	agents := make([]string, benchAgents)
	for i := range agents {
		agents[i] = w.RegisterFunded(1_000_000)
	}
	return w, agents
}

func BenchmarkCreate(b *testing.B) {
	for _, callers := range []int{1, 32} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			w, agents := benchWorld(b)
			f := apptest.Form(apptest.Local)
			each(b, callers, func(n int64) error {
				_, err := w.Sessions.Create(context.Background(), sessions.Create{AgentID: agents[n%benchAgents], Form: f,
					Call: idempotency.Call{Key: fmt.Sprint(n), Path: "/v1/sessions", Hash: make([]byte, 32)}})
				return err
			})
		})
	}
}

func BenchmarkBatch(b *testing.B) {
	for _, callers := range []int{1, 8} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			w, agents := benchWorld(b)
			batches := make([][]telemetry.ReportedEvent, benchAgents)
			status, latency := 200, 180
			for i, agent := range agents {
				for range 10 {
					w.Buy(agent, apptest.Local)
				}
				list, err := w.Sessions.List(context.Background(), sessions.List{AgentID: agent, Page: domain.Page{Number: 1, Size: 10}})
				apptest.OK(b, err)
				for n := range 100 {
					batches[i] = append(batches[i], telemetry.ReportedEvent{SessionID: list.Items[n%10].ID, Report: health.Report{Type: "success",
						StatusCode: &status, LatencyMS: &latency, TargetHost: fmt.Sprintf("host%d.example.com", n%7)}})
				}
			}
			each(b, callers, func(n int64) error {
				_, err := w.Telemetry.Batch(context.Background(), agents[n%benchAgents], batches[n%benchAgents])
				return err
			})
		})
	}
}

func BenchmarkRead(b *testing.B) {
	w, agents := benchWorld(b)
	v := w.Buy(agents[0], apptest.Local)
	for range 20 {
		w.Report(agents[0], v.ID, "success")
	}
	each(b, 2, func(int64) error {
		_, err := w.Sessions.Read(context.Background(), agents[0], v.ID)
		return err
	})
}

func BenchmarkAuthenticateKey(b *testing.B) {
	w, _ := benchWorld(b)
	r := w.RegisterCredentials()
	each(b, 2, func(int64) error {
		_, err := w.Accounts.AuthenticateKey(context.Background(), r.APIKey, nil)
		return err
	})
}
