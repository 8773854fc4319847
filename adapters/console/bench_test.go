// The benchmark measures the pages of an agent with 10,000 sessions and 100,000 entries of the ledger:
//
//	go test ./adapters/console -run '^$' -bench Pages -benchtime 20x
//	TEST_STORE=postgres go test ./adapters/console -run '^$' -bench Pages -benchtime 20x

package console_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// fill stores sessions, half of them live and each with events, and entries.
func fill(b *testing.B, w *world, agent string, sessions, entries int) {
	b.Helper()
	template := w.Buy(agent, apptest.Local).Session
	at := w.Clock.Now()
	for from := 0; from < sessions; from += 500 {
		apptest.OK(b, w.DB.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			for i := from; i < min(from+500, sessions); i++ {
				s := template
				s.ID, s.Money = fmt.Sprintf("sess_bench%015d", i), session.Money{}
				s.Status, s.CreatedAt = session.Active, at.Add(time.Duration(i)*time.Second)
				if i%2 == 0 {
					s.Status, s.Reason, s.EndedAt = session.Terminated, session.AgentRequest, at
				}
				if err := tx.Sessions().Insert(ctx, s); err != nil {
					return err
				}
				var state health.State
				var feed []eventlog.Event
				for n := range 5 {
					state.Report(health.Event{Type: health.Block, StatusCode: 403, Host: "shop.test", At: at})
					feed = append(feed, eventlog.Event{At: at.Add(time.Duration(i+n) * time.Second), Source: eventlog.Agent, Type: "block", LatencyMS: -1})
				}
				if err := tx.Health().Put(ctx, s.ID, state); err != nil {
					return err
				}
				if err := tx.Events().Append(ctx, s.ID, feed); err != nil {
					return err
				}
				if err := tx.Traffic().Record(ctx, agent, s.ID, at.Truncate(time.Hour), ports.Totals{Up: 1, Down: 2, Connections: 1}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for from := 0; from < entries; from += 1000 {
		apptest.OK(b, w.DB.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			for i := from; i < min(from+1000, entries); i++ {
				e := billing.Entry{ID: fmt.Sprintf("txn_bench%d", i), AgentID: agent, Type: billing.Adjustment, At: at,
					Available: billing.Funds{Own: domain.Dollar}, Account: billing.Corrections, Counter: -domain.Dollar,
					Description: "for the benchmark", Ref: fmt.Sprintf("bench:%d", i)}
				if _, err := tx.Ledger().Post(ctx, ports.Posting{Entry: e}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

func BenchmarkPages(b *testing.B) {
	w := open(b, options{raw: true})
	agent := w.signIn("50").Agent.ID
	fill(b, w, agent, 10_000, 100_000)
	for _, path := range []string{"/console/", "/console/sessions", "/console/sessions?status=active", "/console/sessions?risk=low&page=20",
		"/console/sessions?page=400", "/console/sessions/sess_bench000000000000001?range=7d", "/console/money",
		"/console/money?type=adjustment&page=3000"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				if code, _ := w.send("GET", path, nil); code != 200 {
					b.Fatal(code)
				}
			}
		})
	}
}
