package proof_test

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/upstream/kind"
	"agentproxy/adapters/upstream/list"
	"agentproxy/app/catalogs"
	"agentproxy/app/operator"
	"agentproxy/app/payments"
	"agentproxy/app/sessions"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/audit"
	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/domain/recharge"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// history is a database in which everything happened once, and rightly.
type history struct {
	*apptest.World
	now   time.Time
	names []string // pairs of a placeholder and the id that it is for
}

// newHistory lets it happen on a database, and closes it.
func newHistory(t *testing.T, database string) *history {
	h, done := beginHistory(t, database)
	done()
	return h
}

// beginHistory lets it happen on a database, until a month of it is sealed.
func beginHistory(t *testing.T, database string) (h *history, done func()) {
	w, done := apptest.Start(t, apptest.Options{Database: database})
	h = &history{World: w}
	h.sell()
	paid, unpaid := h.pay()
	h.act("backup", "")
	h.Clock.Advance(time.Minute)
	payer := paid.AgentID
	h.statics(payer)
	h.dynamics(payer)
	h.keys(h.RegisterFunded(10))
	h.Clock.Advance(23 * 24 * time.Hour) // the trials of then are over, and so is a month
	young := h.Register()
	h.act("agent disable", h.disabled())
	bought, err := h.CreateWith(young, apptest.Local, apptest.Call("young"))
	apptest.OK(t, err)
	again, err := h.CreateWith(payer, apptest.Local, apptest.Call("payer"))
	apptest.OK(t, err)
	h.name("payer", payer, "unpaid", unpaid.AgentID, "young", young, "paid order", paid.ID, "open order", unpaid.ID,
		"bought", bought.View.ID, "again", again.View.ID)
	apptest.OK(t, h.Tasks.ExpireTrials(t.Context()))
	h.act("agent set-rate-limit", young)
	h.Clock.Advance(2 * time.Hour)
	h.lead()
	if p := provedAll(t, h.DB); p.Faults > 0 || p.Sealed.IsZero() {
		t.Fatalf("the proof that seals a month: %+v", p)
	}
	h.Exec("UPDATE goose_db_version SET tstamp = '2020-01-01 00:00:00'") // the schema is older than the history
	h.now = h.Clock.Now()
	return h, done
}

// lead does what the leader does after a while: on PostgreSQL a round takes what was there in the one before.
func (h *history) lead() {
	h.T.Helper()
	for range 3 {
		for more := true; more; {
			var err error
			_, more, err = h.DB.ProveNew(h.T.Context()) // the last one publishes the head
			apptest.OK(h.T, err)
		}
		apptest.OK(h.T, h.DB.SumUp(h.T.Context()))
	}
}

func (h *history) name(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		h.names = append(h.names, "$"+strings.ReplaceAll(pairs[i], " ", "_")+"$", pairs[i+1])
	}
}

// act keeps an action of the operator.
func (h *history) act(name, subject string) {
	h.T.Helper()
	apptest.OK(h.T, h.DB.Update(h.T.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.AuditTrail().Append(ctx, audit.Action{ID: h.IDs.New(audit.IDPrefix), At: h.Clock.Now(), By: "operator",
			Via: audit.Command, Name: name, Subject: subject, Reason: "for the test"})
	}))
}

// sell adds a list whose lines are sold as addresses.
func (h *history) sell() {
	file := filepath.Join(h.T.(*testing.T).TempDir(), "list.txt")
	apptest.OK(h.T, os.WriteFile(file, []byte("192.0.2.1:8000:u:p\n192.0.2.2:8000:u:p\n"), 0o600))
	p, err := list.New(list.Config{File: file, Now: h.Clock.Now, Pool: list.Pool{SoldAs: "static", Country: "DE"},
		Common: kind.Common{Name: "own", Env: kind.Env{Store: h.DB}, Log: slog.New(slog.DiscardHandler)},
		Probe: func(_ context.Context, l list.Line) (list.Probe, error) {
			return list.Probe{Exit: netip.MustParseAddr(l.Host)}, nil
		}})
	apptest.OK(h.T, err)
	apptest.OK(h.T, p.(ports.Maintainer).Maintain(h.T.Context()))
	listed := apptest.SharedProduct("sta_list", session.Static, procurement.Source{Provider: "own"})
	sold := append(h.Embedded.Products(), h.Seller.Products()...)
	c, err := catalogs.New([]ports.Provider{h.Embedded, h.Seller, p}, append(sold, listed), country.Name)
	apptest.OK(h.T, err)
	h.Reconnect(c)
}

// pay lets one agent recharge, another order a recharge, and a third let the window of an order close.
func (h *history) pay() (paid, open recharge.Order) {
	ctx := h.T.Context()
	chain := fake.NewChain("tron-test", fake.Start)
	orders := payments.NewOrders(payments.Config{}, h.Store, h.Clock, h.IDs, chain, fake.NewKeys("a"))
	watcher := payments.NewWatcher(h.Store, h.Clock, h.IDs, chain, slog.New(slog.DiscardHandler))
	mine := func(blocks int) {
		chain.Mine(blocks)
		h.Clock.Advance(time.Duration(blocks) * fake.BlockEvery)
		apptest.OK(h.T, watcher.Watch(ctx))
	}
	order := func(agent string) recharge.Order {
		d, err := orders.Create(ctx, payments.CreateOrder{AgentID: agent, Amount: 100 * domain.Dollar})
		apptest.OK(h.T, err)
		return d.View.Order
	}
	paid = order(h.Register())
	order(h.Register())
	mine(1)
	chain.Send(fake.ChainAddress(1), paid.Address, 100*domain.Dollar)
	mine(int(recharge.Window/fake.BlockEvery) + 2*fake.FinalBehind)
	open = order(h.Register())
	mine(1)
	return paid, open
}

// statics buys, renews and ends static sessions at every kind of provider.
func (h *history) statics(agent string) {
	buy := func(product string) string {
		d, err := h.Create(agent, product)
		apptest.OK(h.T, err)
		return d.View.ID
	}
	renew := func(id string) {
		_, err := h.Sessions.Renew(h.T.Context(), sessions.Renew{AgentID: agent, SessionID: id})
		apptest.OK(h.T, err)
	}
	live, other, renewed, quit, ended := buy(apptest.Static), buy(apptest.Static), buy(apptest.Static), buy(apptest.Static),
		buy(apptest.Static)
	sold, extended := buy(apptest.RemoteStatic), buy(apptest.RemoteStatic)
	listed := buy("sta_list")
	h.Clock.Advance(time.Hour)
	renew(renewed)
	renew(extended)
	h.Clock.Advance(24 * time.Hour)
	_, err := h.Sessions.Terminate(h.T.Context(), agent, quit)
	apptest.OK(h.T, err)
	_, err = operator.NewSessions(h.Store, h.Clock, h.IDs, h.Transitions, h.Hub).End(h.T.Context(), ended)
	apptest.OK(h.T, err)
	h.act("session end", ended)
	h.name("live", live, "other", other, "renewed", renewed, "quit", quit, "ended", ended, "sold", sold,
		"extended", extended, "listed", listed)
}

// dynamics uses dynamic sessions: with workers, with additions, and some that ended.
func (h *history) dynamics(agent string) {
	ctx := h.T.Context()
	another := h.RegisterFunded(10) // its months are not sealed as long as a session holds money
	added, held, over := h.BuySmall(agent).ID, h.BuySmall(another).ID, h.BuySmall(agent).ID
	h.Reprice(apptest.Local, apptest.Dollars("0.8"))
	for range 2 {
		_, err := h.Sessions.TopUp(ctx, sessions.TopUp{AgentID: agent, SessionID: added, Bytes: apptest.Gigabytes("0.1")})
		apptest.OK(h.T, err)
	}
	_, _, err := h.Workers.Create(ctx, workers.Create{AgentID: agent, SessionID: added, Names: []string{"w"}})
	apptest.OK(h.T, err)
	h.Exec("UPDATE workers SET max_bytes = 1000000000") // a limit
	h.UseBytes(added, "a", 150_000_000)
	h.UseBytes(over, "b", 20_000_000)
	h.Report(agent, added, "success")
	_, err = h.Sessions.Terminate(ctx, agent, over)
	apptest.OK(h.T, err)
	h.Clock.Advance(2 * time.Hour)
	apptest.OK(h.T, h.Tasks.Settle(ctx))
	h.UseBytes(added, "c", 10_000_000)
	h.RenewLease(traffic.LeaseRequest{SessionID: held, Lease: "d", Want: 1000})
	_, err = h.Sessions.Terminate(ctx, another, held)
	apptest.OK(h.T, err)
	h.name("added", added, "held", held, "over", over)
}

// disabled opens an account, sells it an address, and shuts it out; it returns its id.
func (h *history) disabled() string {
	agent := h.RegisterFunded(10)
	d, err := h.Create(agent, apptest.Static)
	apptest.OK(h.T, err)
	h.Clock.Advance(24 * time.Hour)
	apptest.OK(h.T, h.Accounts.Disable(h.T.Context(), agent, "for the test"))
	h.name("shut", agent, "shut session", d.View.ID)
	return agent
}

// open opens a copy of the history, at its end.
func (h *history) open(t *testing.T, database string) *storage.Store {
	c := storage.Config{Path: database, Now: func() time.Time { return h.now }}
	if h.Postgres() {
		c = storage.Config{URL: storage.URL(database), MaxConns: 4, Now: c.Now}
	}
	st, err := storage.Open(context.Background(), c)
	apptest.OK(t, err)
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// provedAll runs a proof to its end.
func provedAll(t *testing.T, st *storage.Store) ports.Proof {
	t.Helper()
	for {
		p, err := st.ProveNext(t.Context())
		apptest.OK(t, err)
		if p.StartedAt.IsZero() {
			return p
		}
	}
}
