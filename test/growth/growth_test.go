//go:build campaign

// Package growth_test measures calls on a large database beside a small one.
package growth_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentproxy/app/ledger"
	"agentproxy/app/operator"
	"agentproxy/app/overview"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/pg"
)

var (
	small  = flag.Int("growth.small", 1000, "sessions of the only agent of the small database")
	large  = flag.Int("growth.large", 200_000, "sessions of the first agent of the large database")
	others = flag.Int("growth.others", 50, "other agents of the large database")
	each   = flag.Int("growth.each", 20_000, "sessions of each other agent")
	rounds = flag.Int("growth.rounds", 25, "times that a call is measured")
)

// lives is how many sessions of each agent live.
const lives = 100

// call is a call of an agent.
type call struct {
	name string
	do   func(ctx context.Context) error
}

// TestCallsOfALargeDatabase prints how long each call takes at 1,000 sessions, and at 200,000 sessions of one
// agent among 1.2 million. The ledger of both is proved. Nothing is asserted of the times.
func TestCallsOfALargeDatabase(t *testing.T) {
	w := apptest.Open(t, apptest.Options{Database: database(t)})
	w.RegisterFunded(1) // the first entry, from whose day on days are kept
	w.Clock.Advance(clonePeriod + session.Day)
	apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
	numbers(w, max(*small, *large, *each))
	began := time.Now()
	first := fill(w, *small, lives)
	vacuum(w)
	names, before := measure(t, w, first)
	t.Logf("%d sessions written and measured in %s", *small, time.Since(began).Round(time.Second))
	began = time.Now()
	f := fill(w, *large, lives)
	for range *others {
		fill(w, *each, lives)
	}
	t.Logf("%d sessions, %d events written in %s", *small+*large+*others**each, (*small+*large+*others**each)*cloneEvents,
		time.Since(began).Round(time.Second))
	vacuum(w)
	again := func(title string, f filled) {
		_, after := measure(t, w, f)
		report(t, title, names, before, after)
	}
	again("before the leader counts", f)
	began = time.Now()
	for range 3 { // PostgreSQL sums what was there at the end of the run before, a minute ago
		apptest.OK(t, w.DB.SumUp(t.Context()))
		w.Clock.Advance(time.Minute)
	}
	t.Logf("counted in %s", time.Since(began).Round(time.Second))
	leftToSum(t, w)
	vacuum(w)
	again("a large agent", f)
	again("a small agent among the others", first)
	began = time.Now()
	faults, entries, err := w.DB.Verify(t.Context())
	if err != nil || len(faults) > 0 {
		t.Errorf("%d faults: %+v, %v", len(faults), faults[:min(3, len(faults))], err)
	}
	t.Logf("%d entries verified in %s", entries, time.Since(began).Round(time.Second))
	prove(t, w)
	seal(t, w)
	w.Exec("DROP TABLE growth_n")
}

// leftToSum counts the entries that the operator's pages and the report of margins read of their time.
func leftToSum(t *testing.T, w *apptest.World) {
	count := func(query string, args ...any) (n int) {
		n, err := strconv.Atoi(w.Column(query, args...)[0])
		apptest.OK(t, err)
		return n
	}
	all := count("SELECT COUNT(*) FROM ledger_entries")
	sums := count("SELECT COALESCE((SELECT SUM(ABS(counter)) FROM account_days WHERE account = 'revenue'), 0)")
	should := count("SELECT SUM(counter) FROM ledger_entries WHERE account = 'revenue'")
	margin := count("SELECT COALESCE((SELECT SUM(charged - refunded) FROM margin_sums WHERE by_key = 'agent'), 0)")
	t.Logf("%d entries; accounts by day have %d and margins %d of %d", all, sums, margin, should)
	if sums != should || margin != should {
		t.Error("the pages of the operator read more than sums of days")
	}
}

// database returns a PostgreSQL database whose statements may take long, or none for SQLite.
func database(t *testing.T) string {
	if os.Getenv("TEST_STORE") != "postgres" {
		return ""
	}
	return pg.Database(t)
}

// prove runs the background proof: at first, of all, and of the entries of one more purchase.
func prove(t *testing.T, w *apptest.World) {
	fresh := func() time.Duration {
		began := time.Now()
		for more := true; more; {
			var err error
			_, more, err = w.DB.ProveNew(t.Context())
			apptest.OK(t, err)
		}
		return time.Since(began)
	}
	all := fresh()
	fresh()
	w.RegisterFunded(1)
	t.Logf("new entries proved: all in %s, then those of an account in %s", all.Round(time.Millisecond),
		fresh().Round(time.Microsecond))
	began, parts := time.Now(), 0
	for {
		p, err := w.DB.ProveNext(t.Context())
		apptest.OK(t, err)
		if parts++; p.StartedAt.IsZero() {
			t.Logf("the complete proof: %d faults in %d entries, %d parts, %s", p.Faults, p.Entries, parts,
				time.Since(began).Round(time.Millisecond))
			return
		}
	}
}

// seal seals the month, and proves what is behind it: at first nothing but what lives, then the entries of one
// more agent.
func seal(t *testing.T, w *apptest.World) {
	pass := func(name string, do func() (faults, entries int)) {
		began := time.Now()
		faults, entries := do()
		t.Logf("%s: %d faults, %d entries read, %s", name, faults, entries, time.Since(began).Round(time.Millisecond))
		if faults > 0 {
			t.Errorf("%s: %d faults", name, faults)
		}
	}
	proof := func() (faults, entries int) {
		for {
			p, err := w.DB.ProveNext(t.Context())
			apptest.OK(t, err)
			if p.StartedAt.IsZero() {
				return p.Faults, int(p.Entries)
			}
		}
	}
	open := func() (int, int) {
		faults, entries, sealed, err := w.DB.VerifyOpen(t.Context())
		apptest.OK(t, err)
		if sealed.IsZero() {
			t.Error("no month is sealed")
		}
		return len(faults), entries
	}
	lead := func() {
		for range 3 {
			for more := true; more; {
				var err error
				_, more, err = w.DB.ProveNew(t.Context())
				apptest.OK(t, err)
			}
			apptest.OK(t, w.DB.SumUp(t.Context()))
		}
		vacuum(w)
	}
	w.Clock.Advance(40 * session.Day)
	apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
	lead()
	pass("the complete proof that seals", proof)
	vacuum(w)
	pass("verify behind the seals", open)
	pass("the proof behind the seals", proof)
	fill(w, *each, lives)
	lead()
	pass("verify with the entries of another agent", open)
}

// vacuum does what PostgreSQL does by itself in time. Nothing has SQLite analyze a database of the service.
func vacuum(w *apptest.World) {
	if w.Postgres() {
		w.Exec("VACUUM ANALYZE")
	}
}

// calls are those that an agent makes.
func calls(w *apptest.World, f filled) []call {
	look := overview.New(w.DB, w.Clock)
	id := w.Column("SELECT id FROM sessions WHERE agent_id = ? AND ord = ?", f.agent, f.sessions/2)[0]
	page := func(number int) domain.Page { return domain.Page{Number: number, Size: 20} }
	list := func(filter ports.SessionFilter, p domain.Page) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := w.Sessions.List(ctx, sessions.List{AgentID: f.agent, Filter: filter, Page: p})
			return err
		}
	}
	usage := func(period string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := w.Wallet.UsageReport(ctx, f.agent, period, page(1))
			return err
		}
	}
	series := func(granularity, from string) func(context.Context) error {
		return func(ctx context.Context) error {
			r, err := ledger.ParseRange(granularity, from, "", w.Clock.Now())
			if err == nil {
				_, err = w.Stats.Series(ctx, f.agent, r)
			}
			return err
		}
	}
	statement := func(of time.Time) func(context.Context) error {
		from := time.Date(of.Year(), of.Month(), 1, 0, 0, 0, 0, time.UTC)
		to := from.AddDate(0, 1, 0)
		return func(ctx context.Context) error {
			return w.DB.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				_, err := tx.Statements().Statement(ctx, f.agent, from, to)
				if err == nil {
					_, err = tx.Statements().StatementItems(ctx, f.agent, from, to, page(1))
				}
				return err
			})
		}
	}
	month := w.Clock.Now().Add(-clonePeriod).Format(time.DateOnly)
	money := operator.NewMoney(w.DB, w.Clock, w.Catalog)
	desk := operator.NewSessions(w.Store, w.Clock, w.IDs, w.Transitions, w.Hub)
	margin := func(by ports.MarginKey) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := money.Margin(ctx, time.Time{}, time.Time{}, by)
			return err
		}
	}
	return []call{
		{"operator, days", func(ctx context.Context) error { _, _, err := money.Days(ctx, 7); return err }},
		{"operator, growth", func(ctx context.Context) error { _, err := money.Growth(ctx, 30); return err }},
		{"operator, agents", func(ctx context.Context) error {
			_, err := money.Agents(ctx, ports.AgentFilter{}, page(1))
			return err
		}},
		{"margin by day", margin(ports.ByDay)},
		{"margin by provider", margin(ports.ByProvider)},
		{"margin by product", margin(ports.ByProduct)},
		{"margin by agent", margin(ports.ByAgent)},
		{"operator, an agent", func(ctx context.Context) error {
			_, err := desk.List(ctx, ports.OverviewFilter{AgentID: f.agent}, page(1))
			return err
		}},
		{"a session", func(ctx context.Context) error { _, err := w.Sessions.Read(ctx, f.agent, id); return err }},
		{"a list", list(ports.SessionFilter{}, page(1))},
		{"a deep page", list(ports.SessionFilter{}, page(f.sessions/40))},
		{"status=active", list(ports.SessionFilter{Status: session.Active}, page(1))},
		{"status=terminated", list(ports.SessionFilter{Status: session.Terminated}, page(1))},
		{"status=expired", list(ports.SessionFilter{Status: session.Expired}, page(1))},
		{"product_no=rare", list(ports.SessionFilter{ProductNo: "rare"}, page(1))},
		{"product_no, usual", list(ports.SessionFilter{ProductNo: apptest.Local}, page(1))},
		{"type=dynamic", list(ports.SessionFilter{Type: session.Dynamic}, page(1))},
		{"product and status", list(ports.SessionFilter{ProductNo: "rare", Status: session.Terminated}, page(1))},
		{"health", func(ctx context.Context) error { _, err := w.Telemetry.Health(ctx, f.agent, id); return err }},
		{"events", func(ctx context.Context) error { _, err := w.Sessions.Events(ctx, f.agent, id, page(1)); return err }},
		{"hours of a session", func(ctx context.Context) error { _, err := look.Hours(ctx, f.agent, id, 168); return err }},
		{"transactions", func(ctx context.Context) error {
			_, err := w.Wallet.Transactions(ctx, f.agent, ports.LedgerFilter{}, page(1))
			return err
		}},
		{"transactions, deep", func(ctx context.Context) error {
			_, err := w.Wallet.Transactions(ctx, f.agent, ports.LedgerFilter{}, page(f.sessions/40))
			return err
		}},
		{"balance", func(ctx context.Context) error { _, err := w.Wallet.Balance(ctx, f.agent); return err }},
		{"stats/overview", func(ctx context.Context) error { _, err := w.Stats.Overview(ctx, f.agent); return err }},
		{"statement", statement(w.Clock.Now())},
		{"statement, a month ago", statement(w.Clock.Now().Add(-clonePeriod))},
		{"the console's look", func(ctx context.Context) error { _, err := look.Summarize(ctx, f.agent, 10); return err }},
		{"stats by day, week", series("day", "")},
		{"stats by day, month", series("day", month)},
		{"stats by hour, month", series("hour", month)},
		{"usage-report day", usage("day")},
		{"usage-report week", usage("week")},
		{"usage-report month", usage("month")},
		{"the stored proof", func(ctx context.Context) error { _, err := w.DB.Proof(ctx); return err }},
	}
}

type figures map[string]time.Duration

// measure returns the names of the calls, and the median of each.
func measure(t *testing.T, w *apptest.World, f filled) (list []string, medians figures) {
	t.Helper()
	medians = figures{}
	for _, c := range calls(w, f) {
		list = append(list, c.name)
		took := make([]time.Duration, *rounds)
		for i := range took {
			began := time.Now()
			apptest.OK(t, c.do(t.Context()))
			took[i] = time.Since(began)
		}
		slices.Sort(took)
		medians[c.name] = took[len(took)/2]
	}
	return list, medians
}

// report logs a table.
func report(t *testing.T, title string, names []string, before, after figures) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%-22s %9s %9s %6s\n", title, "call (median, ms)", "1,000", "large", "times")
	for _, name := range names {
		x, y := before[name].Seconds()*1000, after[name].Seconds()*1000
		fmt.Fprintf(&b, "%-22s %9.2f %9.2f %6.1f\n", name, x, y, y/x)
	}
	t.Log(b.String())
}
