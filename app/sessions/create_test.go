package sessions_test

import (
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

func TestCreateAtOnce(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterFunded(100)
	t.Run("a dynamic session holds its traffic and is active", func(t *testing.T) {
		f := apptest.Form(apptest.Local)
		f.Bytes, f.Protocol, f.Location.City = apptest.Gigabytes("2.5"), "socks5", "Berlin"
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(t, err)
		v := d.View
		if d.Outcome != ports.Created || d.Replayed || v.Status != session.Active || v.Bytes != 2_500_000_000 || v.Usage.Limit != v.Bytes ||
			len(v.Exits) != 1 || v.Protocol != session.SOCKS5 || v.Location.City != "Berlin" || !v.ExpiresAt.IsZero() {
			t.Errorf("created %d %+v", d.Outcome, v)
		}
		apptest.Equal(t, "held", v.Cost, sessions.Cost{Held: apptest.Dollars("1")})
		apptest.Equal(t, "the health", v.Verdict.HealthScore, 100)
		apptest.Equal(t, "the password", v.Password, w.Secrets.ProxyPassword(v.ID, 0))
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("109"))
		if got := w.Read(agent, v.ID); got.Status != session.Active || got.Cost != v.Cost || got.Usage != v.Usage || got.Verdict != v.Verdict {
			t.Errorf("read %+v, created %+v", got, v)
		}
	})
	t.Run("a static session is charged and has addresses of its own", func(t *testing.T) {
		before := w.Balance(agent)
		f := apptest.Form(apptest.Static)
		f.Quantity, f.Days, f.Location.Country = new(3), new(90), "fr"
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(t, err)
		v := d.View
		if d.Outcome != ports.Created || len(v.Exits) != 3 || v.Location.Country != "FR" || !v.ExpiresAt.Equal(w.Clock.Now().Add(90*session.Day)) {
			t.Errorf("created %d %+v", d.Outcome, v)
		}
		apptest.Equal(t, "the cost", v.Cost, sessions.Cost{Charged: apptest.Dollars("8.1")})
		apptest.Equal(t, "the balance", w.Balance(agent), before-apptest.Dollars("8.1"))
	})
	t.Run("a call with the defaults of the product buys the same", func(t *testing.T) {
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: session.CreateRequest{Type: "static", ProductNo: apptest.Static,
			Quantity: new(1), ProductDefaults: true}})
		apptest.OK(t, err)
		if d.View.Days != 30 || d.View.Location.Country == "" {
			t.Errorf("created %+v", d.View.Session)
		}
		d, err = w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: session.CreateRequest{Type: "dynamic", ProductNo: apptest.Local, Bytes: apptest.Gigabytes("2"),
			RotationMode: "timed", RotationInterval: new(time.Minute)}})
		apptest.OK(t, err)
		if d.View.Bytes != 2*billing.GB || !d.View.Rotation.NextAt.Equal(w.Clock.Now().Add(time.Minute)) {
			t.Errorf("created %+v", d.View.Session)
		}
	})
	t.Run("no other agent sees it", func(t *testing.T) {
		v, other := w.Buy(agent, apptest.Local), w.Register()
		_, err := w.Sessions.Read(t.Context(), other, v.ID)
		apptest.ErrorIs(t, err, session.ErrNotFound)
		_, err = w.Sessions.Terminate(t.Context(), other, v.ID)
		apptest.ErrorIs(t, err, session.ErrNotFound)
		_, err = w.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: other, SessionID: v.ID})
		apptest.ErrorIs(t, err, session.ErrNotFound)
		_, err = w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: other, SessionID: v.ID})
		apptest.ErrorIs(t, err, session.ErrNotFound)
		_, err = w.Sessions.Events(t.Context(), other, v.ID, domain.Page{Number: 1, Size: 20})
		apptest.ErrorIs(t, err, session.ErrNotFound)
		_, err = w.Telemetry.Health(t.Context(), other, v.ID)
		apptest.ErrorIs(t, err, session.ErrNotFound)
		list, err := w.Sessions.List(t.Context(), sessions.List{AgentID: other, Page: domain.Page{Number: 1, Size: 20}})
		apptest.OK(t, err)
		apptest.Equal(t, "listed", list.Total, 0)
	})
	t.Run("sessions are listed newest first, by what is asked for", func(t *testing.T) {
		page := domain.Page{Number: 1, Size: 2}
		list, err := w.Sessions.List(t.Context(), sessions.List{AgentID: agent, Page: page, Filter: ports.SessionFilter{Type: session.Dynamic}})
		apptest.OK(t, err)
		if list.Total != 3 || len(list.Items) != 2 || list.Items[0].Type != session.Dynamic || list.Items[0].Password == "" {
			t.Errorf("listed %+v", list)
		}
	})
}

func TestCreateLater(t *testing.T) {
	t.Parallel()
	for _, product := range []string{apptest.LocalAsync, apptest.StaticAsync, apptest.RemoteAsync} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
			agent := w.Register()
			d, err := w.Create(agent, product)
			apptest.OK(t, err)
			if d.Outcome != ports.Pending || d.View.Status != session.Creating || len(d.View.Exits) != 0 || d.View.Cost.Held == 0 {
				t.Fatalf("created %d %+v", d.Outcome, d.View)
			}
			if jobs := w.OrderJobs(); len(jobs) != 1 || jobs[0].Kind != ports.DriveOrdersJob || jobs[0].After > 0 {
				t.Fatalf("the jobs are %+v", jobs)
			}
			notified := &apptest.ChangeRecorder{}
			w.Watch(notified)
			w.Clock.Advance(time.Hour)
			apptest.OK(t, w.RunOrders())
			v := w.Read(agent, d.View.ID)
			if v.Status != session.Active || len(v.Exits) != 1 || !v.ActivatedAt.Equal(w.Clock.Now()) {
				t.Errorf("provisioned to %+v", v.Session)
			}
			if v.Type == session.Static && (!v.ExpiresAt.Equal(w.Clock.Now().Add(30*session.Day)) || v.Cost.Charged != apptest.Dollars("1.5")) {
				t.Errorf("its time runs to %s, it was charged %s", v.ExpiresAt, v.Cost.Charged)
			}
			apptest.Equal(t, "notified", notified.Take(), "session "+v.ID)
			apptest.OK(t, w.Driver.DriveSession(t.Context(), v.ID))
			if again := w.Read(agent, v.ID); !again.ActivatedAt.Equal(v.ActivatedAt) || again.Exits[0] != v.Exits[0] || again.Cost != v.Cost {
				t.Errorf("a second job made it %+v", again.Session)
			}
		})
	}
}

func TestCreateIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim   string
		prepare func(w *apptest.World, agent string, f *session.CreateRequest)
		want    error
	}{
		{"an unknown product", func(_ *apptest.World, _ string, f *session.CreateRequest) { f.ProductNo = "none" }, catalog.ErrProductNotFound},
		{"a product of the other type", func(_ *apptest.World, _ string, f *session.CreateRequest) { f.ProductNo = apptest.Static }, domain.ErrInvalid},
		{"too little traffic", func(_ *apptest.World, _ string, f *session.CreateRequest) { f.Bytes = apptest.Gigabytes("0.05") }, domain.ErrInvalid},
		{"a country that is no country", func(_ *apptest.World, _ string, f *session.CreateRequest) { f.Location.Country = "UK" }, domain.ErrInvalid},
		{"no type", func(_ *apptest.World, _ string, f *session.CreateRequest) { f.Type = "" }, domain.ErrInvalid},
		{"dearer than max_cost", func(_ *apptest.World, _ string, f *session.CreateRequest) {
			f.MaxCost = new(apptest.Dollars("0.399999"))
		}, sessions.ErrPriceMismatch},
		{"dearer than the balance", func(_ *apptest.World, _ string, f *session.CreateRequest) { f.Bytes = apptest.Gigabytes("25.001") }, billing.ErrInsufficientBalance},
		{"a budget that is paused", func(w *apptest.World, a string, _ *session.CreateRequest) { w.SetBudget(a, "", "", true) }, billing.ErrBudgetExceeded},
		{"above the daily limit", func(w *apptest.World, a string, _ *session.CreateRequest) { w.SetBudget(a, "0.399999", "", false) }, billing.ErrBudgetExceeded},
		{"above the total limit", func(w *apptest.World, a string, _ *session.CreateRequest) { w.SetBudget(a, "", "0.399999", false) }, billing.ErrBudgetExceeded},
		{"nothing to attach to", func(_ *apptest.World, _ string, f *session.CreateRequest) { f.ProvisioningMode = "existing" }, catalog.ErrOutOfStock},
		{"a product that is not available", func(_ *apptest.World, _ string, f *session.CreateRequest) { f.ProductNo = "gone" }, catalog.ErrOutOfStock},
		{"an unknown agent", nil, account.ErrNotFound},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(c.claim+map[bool]string{true: ", dry"}[dry], func(t *testing.T) {
				t.Parallel()
				w := apptest.New(t)
				agent, f := "agt_none", apptest.Form(apptest.Local)
				if c.prepare != nil {
					agent = w.Register()
					c.prepare(w, agent, &f)
				}
				before := w.Dump()
				_, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f, DryRun: dry,
					Call: idempotency.Call{Key: "k", Path: "/sessions", Hash: []byte("h")}})
				apptest.ErrorIs(t, err, c.want)
				apptest.Equal(t, "the database", w.Dump(), before)
			})
		}
	}
}

func TestCreateDetails(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	f := apptest.Form(apptest.Local)
	f.Bytes = apptest.Gigabytes("100")
	_, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
	apptest.ErrorIs(t, err, billing.ErrInsufficientBalance)
	e := err.(*domain.Error)
	if e.Details["required"] != apptest.Dollars("40") || e.Details["available"] != apptest.Dollars("10") || e.Details["currency"] != "USD" {
		t.Errorf("the details are %v", e.Details)
	}
	f.Bytes, f.MaxCost = apptest.Gigabytes("1"), new(apptest.Dollars("0.4"))
	_, err = w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
	apptest.OK(t, err)
	w.SetBudget(agent, "0.8", "", false)
	_, err = w.Create(agent, apptest.Local)
	apptest.OK(t, err)
	_, err = w.Create(agent, apptest.Local)
	apptest.ErrorIs(t, err, billing.ErrBudgetExceeded)
	w.Clock.Advance(12 * time.Hour) // another day
	_, err = w.Create(agent, apptest.Local)
	apptest.OK(t, err)
}
