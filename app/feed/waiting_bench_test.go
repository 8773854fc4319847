package feed_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/feed"
	"agentproxy/domain/webhook"
	"agentproxy/test/apptest"
)

// BenchmarkWaiting has 1,000 agents wait and reports what they take of a processor in 15 seconds: as they wait, and
// with the calls that each makes anew when its 30 seconds are over, 33 a second in all. Run it with -benchtime 1x.
func BenchmarkWaiting(b *testing.B) {
	const agents, measured = 1000, 15 * time.Second
	w := apptest.Open(b, apptest.Options{System: true})
	var callers []accounts.Caller
	for range agents {
		c, err := w.Accounts.AuthenticateKey(b.Context(), w.RegisterCredentials().APIKey, nil)
		apptest.OK(b, err)
		callers = append(callers, c)
	}
	for _, run := range []struct {
		name  string
		first func() time.Duration // that each waits
	}{
		{"waits", func() time.Duration { return feed.MaxWait }},
		{"waits and calls", func() time.Duration { return rand.N(feed.MaxWait) + time.Second }},
	} {
		b.Run(run.name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			var all sync.WaitGroup
			for _, c := range callers {
				in := feed.Read{AgentID: c.AgentID, Types: webhook.Types, Limit: feed.MaxItems, Wait: run.first(), Ends: c.Ends(),
					Live: func(ctx context.Context) error { return accounts.Live(ctx, w.Accounts, c) }}
				all.Go(func() {
					for ctx.Err() == nil {
						page, err := w.Feed.Read(ctx, in)
						if err != nil && ctx.Err() == nil {
							b.Error(err)
							return
						}
						in.After, in.Wait = page.Next, feed.MaxWait
					}
				})
			}
			for w.Feed.Waiting() < agents {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Second)
			for b.Loop() {
				before := processorTime(b)
				time.Sleep(measured)
				b.ReportMetric(100*(processorTime(b)-before).Seconds()/measured.Seconds(), "%core")
			}
			cancel()
			all.Wait()
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	apptest.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
