package app_test

import (
	"context"
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/app/sessions"
	"agentproxy/app/telemetry"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

func TestCreateAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.rich(100)
	t.Run("a dynamic session holds its traffic and is active", func(t *testing.T) {
		f := form(local)
		f.Bytes, f.Protocol, f.Location.City = gigabytes("2.5"), "socks5", "Berlin"
		d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		ok(t, err)
		v := d.View
		if d.Outcome != ports.Created || d.Replayed || v.Status != session.Active || v.Bytes != 2_500_000_000 || v.Usage.Limit != v.Bytes ||
			len(v.Exits) != 1 || v.Protocol != session.SOCKS5 || v.Location.City != "Berlin" || !v.ExpiresAt.IsZero() {
			t.Errorf("created %d %+v", d.Outcome, v)
		}
		same(t, "held", v.Cost, sessions.Cost{Held: dollars("1")})
		same(t, "the health", v.Verdict.HealthScore, 100)
		same(t, "the password", v.Password, w.secrets.ProxyPassword(v.ID))
		same(t, "the balance", w.balance(agent), dollars("109"))
		if got := w.read(agent, v.ID); got.Status != session.Active || got.Cost != v.Cost || got.Usage != v.Usage || got.Verdict != v.Verdict {
			t.Errorf("read %+v, created %+v", got, v)
		}
	})
	t.Run("a static session is charged and has addresses of its own", func(t *testing.T) {
		before := w.balance(agent)
		f := form(static)
		f.Quantity, f.Days, f.Location.Country = new(3), new(90), "fr"
		d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		ok(t, err)
		v := d.View
		if d.Outcome != ports.Created || len(v.Exits) != 3 || v.Location.Country != "FR" || !v.ExpiresAt.Equal(w.clock.Now().Add(90*session.Day)) {
			t.Errorf("created %d %+v", d.Outcome, v)
		}
		same(t, "the cost", v.Cost, sessions.Cost{Charged: dollars("8.1")})
		same(t, "the balance", w.balance(agent), before-dollars("8.1"))
	})
	t.Run("a call with the defaults of the product buys the same", func(t *testing.T) {
		d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: session.CreateRequest{Type: "static", ProductNo: static,
			Quantity: new(1), ProductDefaults: true}})
		ok(t, err)
		if d.View.Days != 30 || d.View.Location.Country == "" {
			t.Errorf("created %+v", d.View.Session)
		}
		d, err = w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: session.CreateRequest{Type: "dynamic", ProductNo: local, Bytes: gigabytes("2"),
			RotationMode: "timed", RotationInterval: new(time.Minute)}})
		ok(t, err)
		if d.View.Bytes != 2*billing.GB || !d.View.Rotation.NextAt.Equal(w.clock.Now().Add(time.Minute)) {
			t.Errorf("created %+v", d.View.Session)
		}
	})
	t.Run("nobody else sees it", func(t *testing.T) {
		v, other := w.buy(agent, local), w.register()
		_, err := w.sessions.Read(t.Context(), other, v.ID)
		refused(t, err, session.ErrNotFound)
		_, err = w.sessions.Terminate(t.Context(), other, v.ID)
		refused(t, err, session.ErrNotFound)
		_, err = w.sessions.Rotate(t.Context(), sessions.Rotate{AgentID: other, SessionID: v.ID})
		refused(t, err, session.ErrNotFound)
		_, err = w.sessions.Renew(t.Context(), sessions.Renew{AgentID: other, SessionID: v.ID})
		refused(t, err, session.ErrNotFound)
		_, err = w.sessions.Events(t.Context(), other, v.ID, domain.Page{Number: 1, Size: 20})
		refused(t, err, session.ErrNotFound)
		_, err = w.telemetry.Health(t.Context(), other, v.ID)
		refused(t, err, session.ErrNotFound)
		list, err := w.sessions.List(t.Context(), sessions.List{AgentID: other, Page: domain.Page{Number: 1, Size: 20}})
		ok(t, err)
		same(t, "listed", list.Total, 0)
	})
	t.Run("sessions are listed newest first, by what is asked for", func(t *testing.T) {
		page := domain.Page{Number: 1, Size: 2}
		list, err := w.sessions.List(t.Context(), sessions.List{AgentID: agent, Page: page, Filter: ports.SessionFilter{Type: session.Dynamic}})
		ok(t, err)
		if list.Total != 3 || len(list.Items) != 2 || list.Items[0].Type != session.Dynamic || list.Items[0].Password == "" {
			t.Errorf("listed %+v", list)
		}
	})
}

func TestCreateLater(t *testing.T) {
	t.Parallel()
	for _, product := range []string{localLater, staticLater, remoteLater} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := open(t, setup{unruly: true})
			agent := w.register()
			d, err := w.create(agent, product)
			ok(t, err)
			if d.Outcome != ports.Pending || d.View.Status != session.Creating || len(d.View.Exits) != 0 || d.View.Cost.Held == 0 {
				t.Fatalf("created %d %+v", d.Outcome, d.View)
			}
			if jobs := w.pending(); len(jobs) != 1 || jobs[0].Kind != ports.DriveOrdersJob || jobs[0].After > 0 {
				t.Fatalf("the jobs are %+v", jobs)
			}
			told := &witness{}
			w.Watch(told)
			w.clock.Advance(time.Hour)
			ok(t, w.work())
			v := w.read(agent, d.View.ID)
			if v.Status != session.Active || len(v.Exits) != 1 || !v.ActivatedAt.Equal(w.clock.Now()) {
				t.Errorf("provisioned to %+v", v.Session)
			}
			if v.Type == session.Static && (!v.ExpiresAt.Equal(w.clock.Now().Add(30*session.Day)) || v.Cost.Charged != dollars("1.5")) {
				t.Errorf("its time runs to %s, it was charged %s", v.ExpiresAt, v.Cost.Charged)
			}
			same(t, "told", told.take(), "session "+v.ID)
			ok(t, w.driver.DriveSession(t.Context(), v.ID))
			if again := w.read(agent, v.ID); !again.ActivatedAt.Equal(v.ActivatedAt) || again.Exits[0] != v.Exits[0] || again.Cost != v.Cost {
				t.Errorf("a second job made it %+v", again.Session)
			}
		})
	}
}

func TestCreateIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim   string
		prepare func(w *world, agent string, f *session.CreateRequest)
		want    error
	}{
		{"an unknown product", func(_ *world, _ string, f *session.CreateRequest) { f.ProductNo = "none" }, catalog.ErrProductNotFound},
		{"a product of the other type", func(_ *world, _ string, f *session.CreateRequest) { f.ProductNo = static }, domain.ErrInvalid},
		{"too little traffic", func(_ *world, _ string, f *session.CreateRequest) { f.Bytes = gigabytes("0.05") }, domain.ErrInvalid},
		{"a country that is no country", func(_ *world, _ string, f *session.CreateRequest) { f.Location.Country = "UK" }, domain.ErrInvalid},
		{"no type", func(_ *world, _ string, f *session.CreateRequest) { f.Type = "" }, domain.ErrInvalid},
		{"dearer than max_cost", func(_ *world, _ string, f *session.CreateRequest) { f.MaxCost = new(dollars("0.399999")) }, sessions.ErrPriceMismatch},
		{"dearer than the balance", func(_ *world, _ string, f *session.CreateRequest) { f.Bytes = gigabytes("25.001") }, billing.ErrInsufficientBalance},
		{"a budget that is paused", func(w *world, a string, _ *session.CreateRequest) { w.budget(a, "", "", true) }, billing.ErrBudgetExceeded},
		{"above the daily limit", func(w *world, a string, _ *session.CreateRequest) { w.budget(a, "0.399999", "", false) }, billing.ErrBudgetExceeded},
		{"above the total limit", func(w *world, a string, _ *session.CreateRequest) { w.budget(a, "", "0.399999", false) }, billing.ErrBudgetExceeded},
		{"nothing to attach to", func(_ *world, _ string, f *session.CreateRequest) { f.ProvisioningMode = "existing" }, catalog.ErrOutOfStock},
		{"a product that is not available", func(_ *world, _ string, f *session.CreateRequest) { f.ProductNo = "gone" }, catalog.ErrOutOfStock},
		{"an unknown agent", nil, account.ErrNotFound},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(c.claim+map[bool]string{true: ", dry"}[dry], func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				agent, f := "agt_none", form(local)
				if c.prepare != nil {
					agent = w.register()
					c.prepare(w, agent, &f)
				}
				before := w.dump()
				_, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f, DryRun: dry,
					Call: idempotency.Call{Key: "k", Path: "/sessions", Hash: []byte("h")}})
				refused(t, err, c.want)
				same(t, "the database", w.dump(), before)
			})
		}
	}
}

func TestCreateDetails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	f := form(local)
	f.Bytes = gigabytes("100")
	_, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
	refused(t, err, billing.ErrInsufficientBalance)
	e := err.(*domain.Error)
	if e.Details["required"] != dollars("40") || e.Details["available"] != dollars("10") || e.Details["currency"] != "USD" {
		t.Errorf("the details are %v", e.Details)
	}
	f.Bytes, f.MaxCost = gigabytes("1"), new(dollars("0.4"))
	_, err = w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
	ok(t, err)
	w.budget(agent, "0.8", "", false)
	_, err = w.create(agent, local)
	ok(t, err)
	_, err = w.create(agent, local)
	refused(t, err, billing.ErrBudgetExceeded)
	w.clock.Advance(12 * time.Hour) // another day
	_, err = w.create(agent, local)
	ok(t, err)
}

// budget sets an agent's spending guard; an empty text is no limit.
func (w *world) budget(agent, daily, total string, paused bool) {
	w.t.Helper()
	limit := func(text string) **domain.Money {
		var p *domain.Money
		if text != "" {
			m := dollars(text)
			p = &m
		}
		return &p
	}
	_, err := w.wallet.SetBudget(context.Background(), ledger.SetBudget{AgentID: agent, Daily: limit(daily), Total: limit(total), Paused: &paused})
	ok(w.t, err)
}

// report reports one event of a type.
func (w *world) report(agent, id, kind string) telemetry.Reported {
	w.t.Helper()
	r, err := w.telemetry.Report(context.Background(), agent, telemetry.ReportedEvent{SessionID: id, Report: health.Report{Type: kind}})
	ok(w.t, err)
	return r
}
