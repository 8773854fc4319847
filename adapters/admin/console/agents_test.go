package console_test

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/sessions"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/health"
	. "agentproxy/test/apptest"
)

func TestAgentsHaveTheirTierAndWhenTheyWereSeen(t *testing.T) {
	w := open(t)
	r, ctx := w.RegisterCredentials(), t.Context()
	_, err := w.Accounts.Update(ctx, accounts.Update{AgentID: r.Agent.ID, Update: account.Update{Name: new("=1+1")}})
	OK(t, err)
	w.RegisterFunded(50)
	c, err := w.Accounts.AuthenticateKey(ctx, r.APIKey, nil)
	OK(t, err)
	_, further, err := w.Accounts.Keys.Create(ctx, c, accounts.NewKey{Name: "ci"})
	OK(t, err)
	w.Clock.Advance(time.Hour)
	_, err = w.Accounts.AuthenticateKey(ctx, further, nil)
	OK(t, err)
	other := w.RegisterCredentials() // seen by its first key
	_, err = w.Accounts.AuthenticateKey(ctx, other.APIKey, nil)
	OK(t, err)
	OK(t, w.Accounts.Keys.StoreUses(ctx))
	_, body := w.get("/agents")
	seen := w.Clock.Now().UTC()
	if !strings.Contains(body, "Last seen") || !strings.Contains(body, seen.Format(time.DateTime)) || !strings.Contains(body, "trial") {
		t.Errorf("the agents are\n%s", body)
	}
	code, file := w.get("/agents.csv")
	rows, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	if err != nil || code != 200 || len(rows) != 4 || rows[3][1] != "'=1+1" || rows[3][4] != "trial" || rows[3][12] != seen.Format(time.RFC3339) ||
		rows[2][12] != "" || rows[1][12] != seen.Format(time.RFC3339) {
		t.Errorf("%d, %v: the file is\n%s", code, err, file)
	}
	if _, file = w.get("/agents.csv?search=" + r.Agent.ID); strings.Count(file, "\n") != 2 {
		t.Errorf("of one agent the file is\n%s", file)
	}
	if code, _ = w.get("/agents.csv?registered_from=x"); code != 400 {
		t.Errorf("a network that is none: %d", code)
	}
	if code, _ = w.get("/agents.csv?sort=colour"); code != 400 {
		t.Errorf("an order that is none: %d", code)
	}
	_, file = w.get("/agents.csv?sort=balance")
	if rows, err = csv.NewReader(strings.NewReader(file)).ReadAll(); err != nil || len(rows) != 4 || rows[1][5] != "60" {
		t.Errorf("%v: the richest is not the first of\n%s", err, file)
	}
	if _, body = w.get("/agents?sort=balance"); !strings.Contains(body, `<option value="balance" selected>`) {
		t.Errorf("the order is not chosen in\n%s", body)
	}
	if _, body = w.get("/"); strings.Count(body, "data-chart=") != 2 || !strings.Contains(body, "No account and no recharge") {
		t.Errorf("the overview has no charts of growth:\n%s", body)
	}
	for range domain.MaxPageSize {
		w.Register()
	}
	if _, file = w.get("/agents.csv"); strings.Count(file, "\n") != domain.MaxPageSize+4 {
		t.Errorf("the file has %d lines", strings.Count(file, "\n"))
	}
}

// The page of an agent has what each key may spend and has spent, and no key.
func TestTheOperatorSeesKeys(t *testing.T) {
	w := open(t)
	agent := w.RegisterFunded(50)
	c := accounts.Caller{AgentID: agent, Scopes: account.Scopes}
	k, text, err := w.Accounts.Keys.Create(t.Context(), c, accounts.NewKey{Name: "child", Limits: account.Limits{
		Budget: account.KeyBudget{Total: new(Dollars("2.5")), Daily: new(Dollars("1.25"))}, MaxSessions: 3, Products: []string{Local}}})
	OK(t, err)
	by, err := w.Accounts.AuthenticateKey(t.Context(), text, nil)
	OK(t, err)
	s, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, By: by.Spender(), Form: Form(Local)})
	OK(t, err)
	w.UseBytes(s.View.ID, "one", 250_000_000)
	_, body := w.get("/agents/" + agent)
	_, row, _ := strings.Cut(body, `id="`+k.ID+`"`)
	row, _, _ = strings.Cut(row, "</tr>")
	for _, want := range []string{"child …" + account.Hint(text), "restricted", "$0.10", "$0.30", "$1.25", "$2.50", "1 of 3", "buys " + Local} {
		if !strings.Contains(row, want) {
			t.Errorf("the row of the key does not have %q:\n%s", want, row)
		}
	}
	if strings.Contains(body, text) || !strings.Contains(body, ">free<") {
		t.Errorf("the page has the key, or lacks the first one:\n%s", body)
	}
}

func TestTheOperatorSeesWhatHappenedInASession(t *testing.T) {
	w := open(t)
	agent := w.RegisterFunded(50)
	s := w.Buy(agent, Local)
	w.Observe(s.ID, "shop.test", health.Success)
	w.Report(agent, s.ID, "captcha")
	OK(t, w.Observer.FlushAll(t.Context()))
	_, _, err := w.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: s.ID, Names: []string{"w10", "w2"}})
	OK(t, err)
	_, body := w.get("/sessions/" + s.ID)
	for _, want := range []string{`id="events"`, "captcha", `id="hosts"`, "shop.test", `id="workers"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not have %q:\n%s", want, body)
		}
	}
	if !strings.Contains(body, ">w2<") || strings.Index(body, ">w2<") > strings.Index(body, ">w10<") {
		t.Error("the workers are not in the order in which people count")
	}
}
