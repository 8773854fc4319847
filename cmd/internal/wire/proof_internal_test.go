package wire

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/admin"
	"agentproxy/app/payments"
	"agentproxy/app/workers"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// proven is an audit whose state is known.
type proven struct {
	ports.Audit
	state ports.Proof
}

func (p proven) Proof(context.Context) (ports.Proof, error) { return p.state, nil }

// A scrape reads the proof and proves nothing: another method of the audit would panic.
func TestAScrapeShowsTheProof(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_500)
	all := ledgerGauges(proven{state: ports.Proof{Faults: 2, SucceededAt: at, Head: ports.ProofHead{
		At: at, Seq: 9, Entries: 7, Head: "00000000ffff" + strings.Repeat("0", 52)}}})
	for name, want := range map[string]float64{
		"agentproxy_ledger_drift": 2, "agentproxy_ledger_proved_timestamp_seconds": 1_700_000_000.5,
		"agentproxy_ledger_new_proved_timestamp_seconds": 0, "agentproxy_ledger_head": 65535, "agentproxy_ledger_head_entries": 7,
	} {
		i := slices.IndexFunc(all, func(g admin.Gauge) bool { return g.Name == name })
		got, err := all[i].Read(t.Context())
		apptest.OK(t, err)
		apptest.Equal(t, name, got, want)
	}
}

// What grows is dropped and archived by the leader's tasks, and by no other replica.
func TestTheLeaderDropsDaysAndArchivesSessions(t *testing.T) {
	t.Parallel()
	w := apptest.OpenPostgres(t)
	agent := w.Register()
	w.LetArchive()
	v := w.Buy(agent, apptest.Local)
	_, _, err := w.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: v.ID, Names: []string{"a"}})
	apptest.OK(t, err)
	_, err = w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	leads := false
	all := tasksIn{Store: w.DB, Hub: w.Hub, Observer: w.Observer, Passes: w.Tasks, Catalog: w.Catalog, Accounts: w.Accounts, Orders: &payments.Orders{}}.
		list(nil, func() bool { return leads })
	run := func(name string) {
		t.Helper()
		i := slices.IndexFunc(all, func(t task) bool { return t.name == name })
		if i < 0 || all[i].leads == nil || all[i].leads() {
			t.Fatalf("no task of the leader alone is called %q", name)
		}
		apptest.OK(t, all[i].run(t.Context()))
	}
	days := func() int {
		return len(w.Column(`SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'event_chunks_d%'
			AND substring(relname FROM 15)::bigint < ?`, w.Clock.Now().Unix()/86400-8))
	}
	// The migration made days by the clock of the server.
	w.Clock.Set(time.Now().Add(91 * session.Day))
	apptest.OK(t, w.DB.MeasureClock(t.Context()))
	if days() == 0 {
		t.Fatal("no day is old")
	}
	run("keep partitions of events")
	apptest.Equal(t, "old days that are left", days(), 0)
	run("settle sessions")
	run("archive sessions")
	apptest.Equal(t, "archived sessions", len(w.Column("SELECT session FROM session_archive")), 1)
}
