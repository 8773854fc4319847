package console_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/admin/console"
	"agentproxy/adapters/admin/signin"
	"agentproxy/app/accounts"
	"agentproxy/app/exitlogs"
	"agentproxy/app/fulfilment"
	"agentproxy/app/ledger"
	"agentproxy/app/operator"
	"agentproxy/app/ordering"
	"agentproxy/app/payments"
	"agentproxy/app/policies"
	"agentproxy/app/reconcile"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/audit"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
	. "agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// parkedJobs has one parked job, whose error has markup.
type parkedJobs struct{ done []string }

func (*parkedJobs) List(_ context.Context, state, _ string, _ int) ([]console.Job, error) {
	return []console.Job{{ID: 7, Kind: "drive-orders", State: state, Error: markup}}, nil
}

func (j *parkedJobs) Retry(_ context.Context, id int64) error {
	j.done = append(j.done, fmt.Sprint("retry ", id))
	return nil
}

func (j *parkedJobs) Discard(_ context.Context, id int64) error {
	j.done = append(j.done, fmt.Sprint("discard ", id))
	return nil
}

// markup is what a stranger may call himself.
const markup = `"><script>alert(1)</script><b x='`

type world struct {
	*World
	pages     *console.Console
	trail     *operator.Trail
	jobs      *parkedJobs
	recharges *payments.Orders
	watcher   *payments.Watcher
	sent      *[]string // by the development chain
	rules     *policies.Published
	log       *bytes.Buffer
	user      signin.User
}

func open(t *testing.T) world {
	w := New(t)
	var text bytes.Buffer
	st, log := operator.Audited(w.Store, w.IDs), slog.New(slog.NewTextHandler(&text, nil))
	base := w.Base()
	base.Store = st
	chain := fake.NewChain("tron-test", fake.Start)
	x := world{World: w, user: signin.User{Name: "ann", Role: signin.Act}, trail: operator.NewTrail(st, w.Clock, w.IDs), jobs: &parkedJobs{}, sent: new([]string), log: &text, rules: policies.Publish(nil),
		recharges: payments.NewOrders(payments.Config{}, st, w.Clock, w.IDs, chain, fake.NewKeys("a")),
		watcher:   payments.NewWatcher(st, w.Clock, w.IDs, chain, log)}
	host := console.Host{Version: "1.2.3",
		Backup: func(_ context.Context, name string) (string, error) { return "/data/" + name, nil },
		Send: func(_ context.Context, to string, amount domain.Money) (recharge.Transfer, error) {
			*x.sent = append(*x.sent, to+" "+amount.String())
			return recharge.Transfer{}, nil
		}}
	x.pages = console.New(console.Deps{Sessions: operator.NewSessions(st, w.Clock, w.IDs, w.Transitions, w.Hub),
		Money: operator.NewMoney(st, w.Clock, w.Catalog), Trail: x.trail, Referrers: accounts.NewReferrers(st, w.Clock, w.IDs),
		Accounts: accounts.New(accounts.Config{KeepOriginDays: 90}, base, nil, w.Transitions, w.Hub),
		Wallet:   ledger.NewWallet(st, w.Clock, w.IDs), Orders: ordering.NewDesk(st, w.Driver),
		Exits: exitlogs.New(exitlogs.Config{Days: 90}, st, w.Clock, w.IDs), Recharges: x.recharges, Payments: x.watcher,
		Proof: w.DB, Owed: reconcile.NewWatch(st, log), Reconcile: reconcile.New(st, w.Clock, w.Catalog, w.Desk, nil, log),
		Catalog: w.Catalog, Policy: x.rules, Access: fulfilment.New(st, w.Secrets, w.Catalog, log), Jobs: x.jobs,
		Host: host, IDs: w.IDs, Clock: w.Clock, Log: log})
	return x
}

func (w world) get(path string) (int, string) {
	rec := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	w.pages.ServeHTTP(rec, r.WithContext(signin.With(r.Context(), w.user)))
	return rec.Code, rec.Body.String()
}

func (w world) post(path string, form url.Values, origin string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	rec := httptest.NewRecorder()
	w.pages.ServeHTTP(rec, r.WithContext(signin.With(r.Context(), w.user)))
	return rec
}

// away is a store that cannot be reached.
type away struct{ ports.Store }

func (away) View(context.Context, ports.ReadSet, func(context.Context, ports.Tx) error) error {
	return ErrStore
}

func TestTheCauseOfAnOutageIsLogged(t *testing.T) {
	w := open(t)
	w.Store.Store = away{w.Store.Store}
	if status, body := w.get("/agents"); status != http.StatusServiceUnavailable || strings.Contains(body, "on purpose") {
		t.Errorf("%d\n%s", status, body)
	}
	if !strings.Contains(w.log.String(), ErrStore.Error()) {
		t.Errorf("it logs %q", w.log)
	}
}

// did returns what was kept, the newest first.
func (w world) did() []audit.Action {
	w.T.Helper()
	list, err := w.trail.List(w.T.Context(), audit.Filter{}, domain.Page{Number: 1, Size: 100})
	OK(w.T, err)
	return list.Items
}

func TestEveryPageEscapesStrangersTexts(t *testing.T) {
	t.Parallel()
	w := open(t)
	r, err := w.World.Accounts.Register(t.Context(), accounts.Register{Profile: account.Profile{Name: "agent",
		WebhookURL: "https://hooks.example/in?token=of-the-agent"}})
	OK(t, err)
	agent := r.Agent.ID
	s := w.Buy(agent, Static)
	w.Exec(`UPDATE agents SET name = ?, disabled_for = ?, registered_with = ?, contact_email = ? WHERE id = ?`, markup, markup, markup, markup, agent)
	w.Exec(`UPDATE sessions SET city = ?, failure_code = 'X', failure_message = ? WHERE id = ?`, markup, markup, s.ID)
	OK(t, w.trail.Do(t.Context(), audit.Action{By: markup, Name: markup, Subject: agent, Reason: markup, Details: markup},
		func(context.Context) error { return nil }))
	order, err := w.recharges.Create(t.Context(), payments.CreateOrder{AgentID: agent, Amount: 5 * domain.Dollar})
	OK(t, err)
	w.Exec(`UPDATE referrers SET name = ?`, markup)
	w.undecided(w.RegisterFunded(20))
	w.Exec(`UPDATE upstream_orders SET reason = ?`, markup)
	w.Clock.Advance(time.Second)
	q := "?search=" + url.QueryEscape(markup)
	for path, want := range map[string]string{"/": "Overview", "/agents": agent, "/agents" + q: "Agents", "/agents/" + agent: `id="balance"`,
		"/sessions": "session-" + s.ID, "/sessions?agent=" + url.QueryEscape(markup): "No session", "/sessions/" + s.ID: `id="charged"`,
		"/money?by=agent": agent, "/recharges": "order-" + order.View.ID, "/recharges/" + order.View.ID: "No transfer", "/recharges/addresses": order.View.Address,
		"/agents/referrers": "Referring agents", "/sellers": "seller-remote", "/sellers/remote": RemoteStatic, "/sellers/embedded": "renews, cancels, replaces", "/jobs": "job-7", "/exits": "Look-ups", "/exits/quality": "No exit was measured",
		"/policy?host=" + url.QueryEscape(markup): "verdict", "/audit": "action-", "/do/agent-disable?subject=" + url.QueryEscape(markup): "I am sure",
		"/do/devchain-send?amount=2&to=" + url.QueryEscape(markup): "development", "/jobs?state=any&kind=" + url.QueryEscape(markup): "job-7",
		"/audit?by=" + url.QueryEscape(markup) + "&from=2020-01-01&to=2030-01-01": "action-",
	} {
		code, body := w.get(path)
		if code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d without %q", path, code, want)
		}
		if strings.Contains(body, "of-the-agent") || path == "/agents/"+agent && !strings.Contains(body, "https://hooks.example/in?…") {
			t.Errorf("%s shows the query of a webhook's URL, or not its address", path)
		}
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "<b x=") || strings.Count(body, "<h1>") != 1 {
			t.Errorf("%s shows markup as it is, or has not one heading", path)
		}
	}
	for path, want := range map[string]int{"/nothing": 404, "/do/nothing": 404, "/agents/agt_x": 404, "/sessions/sess_x": 404, "/money?from=x": 400, "/audit?to=x": 400, "/agents?registered_from=x": 400,
		"/recharges/PAY0": 404, "/sellers/unknown": 404} {
		if code, _ := w.get(path); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
}

func TestAButtonDoesWhatItsCommandDoes(t *testing.T) {
	t.Parallel()
	w := open(t)
	agent := w.RegisterFunded(20)
	s := w.Buy(agent, Static)
	sure := url.Values{"subject": {s.ID}, "percent": {"50"}, "reason": {"slow"}, "sure": {"yes"}, "key": {"k1"}}
	for _, lacks := range []string{"sure", "reason", "percent"} {
		form := url.Values{}
		for k, v := range sure {
			if k != lacks {
				form[k] = v
			}
		}
		if rec := w.post("/do/refund", form, ""); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), `id="problem"`) {
			t.Errorf("without %s: %d", lacks, rec.Code)
		}
	}
	if rec := w.post("/do/refund", sure, "https://evil.example"); rec.Code != http.StatusForbidden {
		t.Errorf("another site: %d", rec.Code)
	}
	Equal(t, "actions before", len(w.did()), 0)
	for range 2 { // a double click is one refund
		if rec := w.post("/do/refund", sure, ""); rec.Code != http.StatusSeeOther {
			t.Errorf("%d: %s", rec.Code, rec.Body)
		}
	}
	m := w.Read(agent, s.ID).Money
	Equal(t, "refunded", m.Refunded.Total(), m.Charged.Total()/2)
	end := url.Values{"subject": {s.ID}, "reason": {"abuse"}, "by": {"alice (CFO)"}, "sure": {"yes"}}
	if rec := w.post("/do/session-end", end, ""); rec.Code != http.StatusSeeOther || !w.Read(agent, s.ID).Status.Over() {
		t.Errorf("the end: %d", rec.Code)
	}
	end.Set("subject", agent)
	if rec := w.post("/do/agent-disable", end, ""); rec.Code != http.StatusSeeOther {
		t.Errorf("disable: %d", rec.Code)
	}
	Equal(t, "actions", len(w.did()), 3)
	for _, a := range w.did() { // who signed in, whatever the form names
		if a.By != "ann" {
			t.Errorf("%s is by %s", a.Name, a.By)
		}
	}
	rec := w.post("/do/refund", sure, "")
	for name, want := range map[string]string{"Content-Security-Policy": "default-src 'self'", "X-Frame-Options": "DENY", "Cache-Control": "no-store"} {
		if !strings.Contains(rec.Header().Get(name), want) {
			t.Errorf("%s is %q", name, rec.Header().Get(name))
		}
	}
}
