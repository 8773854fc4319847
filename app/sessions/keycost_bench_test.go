package sessions_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// quiet is a store that writes no event of accounts.
type quiet struct{ ports.Store }

// Update runs fn on a unit that writes none.
func (q quiet) Update(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	return q.Store.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, quietTx{tx}) })
}

type quietTx struct{ ports.Tx }

func (t quietTx) Outbox() ports.Outbox { return quietOutbox{t.Tx.Outbox()} }

type quietOutbox struct{ ports.Outbox }

func (quietOutbox) Append(context.Context, webhook.Event) error { return nil }

// BenchmarkPurchaseBesideBudgets buys in turn for an agent without restricted keys, for one whose other key has a budget,
// and without the events of accounts, and reports each against the first.
func BenchmarkPurchaseBesideBudgets(b *testing.B) {
	w := apptest.Open(b, apptest.Options{SessionLimit: 1 << 20, Exits: 1 << 16})
	free, beside := w.RegisterFunded(1_000_000), w.RegisterFunded(1_000_000)
	_, _, err := w.Accounts.Keys.Create(b.Context(), accounts.Caller{AgentID: beside, Scopes: account.Scopes}, accounts.NewKey{Name: "child",
		Limits: account.Limits{Budget: account.KeyBudget{Total: new(apptest.Dollars("10"))}}})
	apptest.OK(b, err)
	silent := apptest.NewUseCases(apptest.Dependencies{Store: quiet{w.Store}, Clock: w.Clock, IDs: w.IDs, Secrets: w.Secrets,
		Catalog: w.Catalog, Hub: w.Hub, Limits: w.Limits, SessionLimit: 1 << 20, Log: slog.New(slog.DiscardHandler)}).Sessions
	ways := []struct {
		agent string
		use   *sessions.Service
	}{{free, w.Sessions}, {beside, w.Sessions}, {w.RegisterFunded(1_000_000), silent}}
	var spent [3]time.Duration
	n := 0
	for b.Loop() {
		n++
		for i := range ways {
			i = (i + n) % len(ways) // each follows each other
			of := ways[i]
			began := time.Now()
			_, err := of.use.Create(b.Context(), sessions.Create{AgentID: of.agent, Form: apptest.Form(apptest.Local)})
			spent[i] += time.Since(began)
			apptest.OK(b, err)
		}
	}
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "beside-a-budget/free")
	b.ReportMetric(float64(spent[0])/float64(spent[2]), "with-events/without")
}
