package console_test

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentproxy/adapters/admin/console"
	"agentproxy/app/accounts"
	"agentproxy/app/payments"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	. "agentproxy/test/apptest"
	"agentproxy/test/fake"

	"agentproxy/app/ordering"
)

// reads are the buttons that change nothing: they need no reason and are not kept.
var reads = []string{"recharge-audit", "verify"}

// order returns the newest order of a session at a seller.
func (w world) order(session string) procurement.Order {
	w.T.Helper()
	list, err := w.Desk.List(w.T.Context(), ordering.ListOrders{Filter: ports.OrderFilter{},
		Page: domain.Page{Number: 1, Size: 100}})
	OK(w.T, err)
	i := slices.IndexFunc(list.Items, func(o procurement.Order) bool { return o.SessionID == session })
	if i < 0 {
		w.T.Fatalf("no order for %s", session)
	}
	return list.Items[i]
}

// undecided buys an address whose order the seller made, without an answer.
func (w world) undecided(agent string) procurement.Order {
	w.T.Helper()
	w.Seller.Next(fake.Provision, fake.LoseAnswer())
	s := w.Buy(agent, RemoteStatic)
	o := w.order(s.ID)
	if o.Status != procurement.Unknown {
		w.T.Fatalf("the order is %s", o.Status)
	}
	return o
}

// TestEveryButtonKeepsWhoDidItWhenAndWhy presses every button of the console.
func TestEveryButtonKeepsWhoDidItWhenAndWhy(t *testing.T) {
	t.Parallel()
	w := open(t)
	agent, other := w.RegisterFunded(90), w.RegisterFunded(90)
	ended, refunded := w.Buy(other, Static), w.Buy(other, Static)
	adopted, released := w.undecided(agent), w.undecided(agent)
	w.Seller.Change(released.SessionID, func(p *fake.Purchase) { p.Released = true })
	lost := w.order(w.Buy(agent, RemoteStatic).ID)
	w.Exec(`UPDATE upstream_orders SET lost_at = ? WHERE id = ?`, w.Clock.Now().UnixMicro(), lost.ID)
	paid, err := w.recharges.Create(t.Context(), payments.CreateOrder{AgentID: agent, Amount: 5 * domain.Dollar})
	OK(t, err)
	_, err = w.World.Accounts.Register(t.Context(), accounts.Register{Profile: account.Profile{Name: "agent"},
		Origin: account.Origin{Addr: addr("192.0.2.9")}})
	OK(t, err)
	_, err = w.Referrers.Add(t.Context(), "Partner", "PARTNER")
	OK(t, err)

	steps := []struct {
		form, subject, fields string
		about                 string // what is kept as the subject; "any" for an id that the test does not know
	}{
		{"agent-add", "", "name=partner", "any"},
		{"agent-set-tier", agent, "tier=verified&evidence=passport", agent},
		{"agent-set-rate-limit", agent, "per_minute=5", agent},
		{"agent-note", agent, "", agent},
		{"agent-rotate-key", agent, "", agent},
		{"adjust", agent, "amount=-1.50", agent},
		{"session-end", ended.ID, "", ended.ID},
		{"refund", refunded.ID, "percent=50", refunded.ID},
		{"orders-adopt", adopted.ID, "provider_ref=" + w.Seller.Of(adopted.SessionID)[0].Delivery.Ref, adopted.ID},
		{"orders-release", released.ID, "", released.ID},
		{"orders-lost", lost.ID, "", lost.ID},
		{"orders-reconcile", "remote", "", "remote"},
		{"agent-disable", agent, "", agent},
		{"agent-enable", agent, "", agent},
		{"agent-disable-network", "", "network=192.0.2.0/24", "any"},
		{"referrer-add", "", "name=Friend&code=FRIEND", "FRIEND"},
		{"referrer-disable", "PARTNER", "", "PARTNER"},
		{"jobs-retry", "7", "", "7"},
		{"jobs-discard", "7", "", "7"},
		{"recharge-rescan", "", "from=2026-01-01", ""},
		{"devchain-send", "", "amount=5&to=" + paid.View.Address, paid.View.Address},
		{"exits-lookup", "", "exit=127.0.0.9&at=2026-03-01T12:00:00Z&minutes=5", "127.0.0.9"},
		{"exits-hold", "", "from=2026-02-01&to=2026-02-03", "2026-02-01 to 2026-02-03"},
		{"backup", "", "file=monday.db", ""},
		{"secret-rotate", "", "", ""},
	}
	forms := console.Commands()
	press := func(form, subject, fields, about string) {
		t.Helper()
		w.pressed(form, subject, fields, about, forms[form])
		delete(forms, form)
	}
	for _, s := range steps {
		press(s.form, s.subject, s.fields, s.about)
	}
	w.pressed("exits-lookup", "", "seller=oxy&target=shop.example&client=192.0.2.7&at=2026-03-01T12:00:00Z&minutes=5",
		"192.0.2.7 to oxy to shop.example", "exits lookup")
	for _, wrong := range []string{"", "client=192.0.2", "port=7&agent=" + agent} {
		values, err := url.ParseQuery("at=2026-03-01T12:00:00Z&minutes=5&by=ann&reason=police&sure=yes&" + wrong)
		OK(t, err)
		Equal(t, "a look-up with "+wrong, w.post("/do/exits-lookup", values, "").Code, http.StatusBadRequest)
	}
	if _, text := w.get("/exits"); !strings.Contains(text, "192.0.2.7") {
		t.Error("the page does not list what was asked for")
	}
	press("exits-release", w.Column(`SELECT id FROM exit_holds`)[0], "", "any")
	for _, form := range reads {
		before := len(w.did())
		if rec := w.post("/do/"+form, url.Values{}, ""); rec.Code != http.StatusOK {
			t.Errorf("%s: %d %s", form, rec.Code, rec.Body)
		}
		Equal(t, "kept of "+form, len(w.did()), before)
		delete(forms, form)
	}
	if len(forms) > 0 {
		t.Errorf("the test presses no %v", forms)
	}
	Equal(t, "jobs", strings.Join(w.jobs.done, ", "), "retry 7, discard 7")
	Equal(t, "transfers", strings.Join(*w.sent, ", "), paid.View.Address+" 5")
	Equal(t, "the end", w.Read(other, ended.ID).Status.Over(), true)
}

// pressed sends a form without being sure, which must change nothing, and then as it should be.
func (w world) pressed(form, subject, fields, about, command string) {
	w.T.Helper()
	values, err := url.ParseQuery(fields)
	OK(w.T, err)
	reason := "because of " + form
	for name, value := range map[string]string{"subject": subject, "by": "another", "reason": reason, "key": "k-" + form} {
		values.Set(name, value)
	}
	before := len(w.did())
	if rec := w.post("/do/"+form, values, ""); rec.Code != http.StatusBadRequest || len(w.did()) != before {
		w.T.Errorf("%s without being sure: %d", form, rec.Code)
	}
	values.Set("sure", "yes")
	w.Clock.Advance(1)
	rec := w.post("/do/"+form, values, "")
	if rec.Code != http.StatusSeeOther && rec.Code != http.StatusOK {
		w.T.Errorf("%s: %d %s", form, rec.Code, regexp.MustCompile(`(?s)id="problem".*?</div>`).FindString(rec.Body.String()))
		return
	}
	did := w.did()
	if len(did) != before+1 {
		w.T.Errorf("%s: %d actions are kept", form, len(did)-before)
		return
	}
	a := did[0]
	if a.By != "ann" || a.Via != "console" || a.Name != command || a.Reason != reason || !a.At.Equal(w.Clock.Now().Truncate(1000)) ||
		about != "any" && a.Subject != about || about == "any" && a.Subject == "" {
		w.T.Errorf("%s: kept is %+v", form, a)
	}
}

// TestThePagesAndButtonsOfTheManualExist reads the table of the manual.
func TestThePagesAndButtonsOfTheManualExist(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../../docs/operating.md")
	OK(t, err)
	_, part, _ := strings.Cut(string(manual), "| Command | In the console |")
	part, _, _ = strings.Cut(part, "\n\n")
	w := open(t)
	forms := console.Commands()
	paths := regexp.MustCompile("`(/[a-z/-]*)`").FindAllStringSubmatch(part, -1)
	for _, m := range paths {
		if code, _ := w.get(m[1]); code != http.StatusOK {
			t.Errorf("%s: %d", m[1], code)
		}
		delete(forms, strings.TrimPrefix(m[1], "/do/"))
	}
	if len(paths) < 30 || len(forms) > 0 {
		t.Errorf("the manual has %d paths, and nothing of %v", len(paths), forms)
	}
}
