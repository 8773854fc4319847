package console_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
	"agentproxy/test/qrscan"
)

func TestBuy(t *testing.T) {
	w := open(t, options{Options: apptest.Options{TrialBalance: -1}})
	id := w.signIn("1").Agent.ID
	list := w.get("/console/sessions/new")
	if !strings.Contains(list, `id="choose-`+apptest.Local+`"`) || strings.Contains(list, `id="choose-gone"`) {
		t.Errorf("the products are\n%s", list)
	}
	w.get("/console/sessions/new?product_no=" + apptest.Local)
	quote := w.get("/console/sessions/quote?product_no=" + apptest.Local + "&traffic_gb=1.5&country=DE&protocol=socks5&rotation_mode=timed&rotation_minutes=5")
	if !strings.Contains(quote, "<dt>Traffic in GB</dt><dd>1.5</dd>") {
		t.Errorf("the quote does not name what is bought:\n%s", quote)
	}
	if byID(t, quote, "quote-cost") != "$0.60" || byID(t, quote, "quote-balance") != "$0.40" {
		t.Errorf("the quote is\n%s", quote)
	}
	if body := w.get("/console/sessions/quote?product_no=" + apptest.Local + "&traffic_gb=1&rotation_mode=on_demand&rotation_minutes=10"); strings.Contains(body, "rotation minutes") {
		t.Errorf("minutes are named that do not count:\n%s", body)
	}
	form := hidden(t, quote, "/console/sessions")
	if form.Get("max_cost") != "0.6" {
		t.Errorf("the purchase may cost %q", form.Get("max_cost"))
	}
	first := w.post("/console/sessions", form)
	if again := w.post("/console/sessions", form); again != first {
		t.Errorf("a double click leads to %s, want %s", again, first)
	}
	sid := strings.TrimSuffix(strings.TrimPrefix(first, "/console/sessions/"), "?done=bought")
	s := w.Read(id, sid)
	if s.Bytes != 1_500_000_000 || s.Location.Country != "DE" || s.Protocol != session.SOCKS5 || s.Rotation.Interval.Minutes() != 5 ||
		w.Balance(id) != apptest.Dollars("0.4") {
		t.Errorf("bought %+v, the balance is %s", s.Session, w.Balance(id))
	}
	if body := w.get(first); !strings.Contains(byID(t, body, "notice"), "bought") {
		t.Errorf("after the purchase:\n%s", body)
	}
	form.Set("traffic_gb", "1")
	if code, body := w.send("POST", "/console/sessions", form); code != http.StatusConflict || !strings.Contains(body, "IDEMPOTENCY_CONFLICT") {
		t.Errorf("the key of another purchase: %d", code)
	}
	for _, c := range []struct {
		claim, query, want string
		code               int
	}{
		{"what is no number is shown again", "product_no=" + apptest.Local + "&traffic_gb=x", "traffic gb", http.StatusBadRequest},
		{"more than the balance", "product_no=" + apptest.Local + "&traffic_gb=2", "INSUFFICIENT_BALANCE", http.StatusPaymentRequired},
		{"a product that is sold out", "product_no=gone&traffic_gb=1", "PRODUCT_OUT_OF_STOCK", http.StatusConflict},
		{"one that is not sold", "product_no=none&traffic_gb=1", "PRODUCT_NOT_FOUND", http.StatusNotFound},
		{"an interval beyond all bounds", "product_no=" + apptest.Local + "&traffic_gb=1&rotation_mode=timed&rotation_minutes=999999999999999", "interval", http.StatusBadRequest},
	} {
		if code, body := w.send("GET", "/console/sessions/quote?"+c.query, nil); code != c.code || !strings.Contains(byID(t, body, "problem"), c.want) {
			t.Errorf("%s: %d\n%s", c.claim, code, body)
		}
	}
	dear := url.Values{"key": {"form_dear"}, "product_no": {apptest.Local}, "traffic_gb": {"0.5"}, "max_cost": {"0.1"}}
	if code, body := w.send("POST", "/console/sessions", dear); code != http.StatusConflict || !strings.Contains(body, "PRICE_MISMATCH") {
		t.Errorf("a price that rose after the quote: %d", code)
	}
	dear.Del("key")
	if code, _ := w.send("POST", "/console/sessions", dear); code != http.StatusBadRequest {
		t.Errorf("without a key: %d", code)
	}
	if list := w.get("/console/sessions"); strings.Count(list, `id="session-`) != 1 {
		t.Errorf("more than one session was bought:\n%s", list)
	}
}

func TestRotateRenewAndEnd(t *testing.T) {
	w := open(t, options{})
	id := w.signIn("50").Agent.ID
	dyn, static := w.Buy(id, apptest.Local), w.Buy(id, apptest.Static)
	page := "/console/sessions/" + dyn.ID
	form := hidden(t, w.get(page), page+"/rotate")
	form.Set("reason", "http_403")
	for range 2 {
		if to := w.post(page+"/rotate", form); to != page+"?done=rotated" {
			t.Errorf("rotating leads to %s", to)
		}
	}
	if got := w.Read(id, dyn.ID); got.Rotation.Count != 1 || got.Exits[0] == dyn.Exits[0] {
		t.Errorf("two clicks rotated %d times", got.Rotation.Count)
	}
	page = "/console/sessions/" + static.ID
	body := w.get(page + "/renew")
	cost := byID(t, body, "quote-cost")
	before := w.Balance(id)
	form = hidden(t, body, page+"/renew")
	for range 2 {
		if to := w.post(page+"/renew", form); to != page+"?done=renewed" {
			t.Errorf("renewing leads to %s", to)
		}
	}
	if paid := before - w.Balance(id); "$"+paid.String()+".00" != cost || !w.Read(id, static.ID).ExpiresAt.Equal(static.ExpiresAt.AddDate(0, 0, 30)) {
		t.Errorf("two clicks cost %s, quoted %s, until %s", paid, cost, w.Read(id, static.ID).ExpiresAt)
	}
	if code, body := w.send("GET", page+"/renew?duration_days=7", nil); code != http.StatusBadRequest || !strings.Contains(body, `id="problem"`) {
		t.Errorf("days that are not sold: %d", code)
	}
	if got := byID(t, w.get(page+"/end"), "forfeited"); got != "$2.00" {
		t.Errorf("%s would be given up", got)
	}
	page = "/console/sessions/" + dyn.ID
	if got := byID(t, w.get(page+"/end"), "back"); got != "$0.40" {
		t.Errorf("%s would come back", got)
	}
	if w.Read(id, dyn.ID).Status != session.Active {
		t.Error("the question has ended the session")
	}
	for range 2 {
		if to := w.post(page+"/end", url.Values{}); to != page+"?done=ended" {
			t.Errorf("ending leads to %s", to)
		}
	}
	body = w.get(page + "?done=ended")
	if got := byID(t, body, "status"); !strings.Contains(got, "terminated") || strings.Contains(body, `id="rotate"`) || strings.Contains(body, `id="connect"`) || strings.Contains(byID(t, body, "used"), "left") {
		t.Errorf("an ended session is %s", got)
	}
}

func TestRecharge(t *testing.T) {
	w := open(t, options{Options: apptest.Options{TrialBalance: -1}})
	id := w.signIn("").Agent.ID
	form := hidden(t, w.get("/console/money"), "/console/money/recharges")
	form.Set("amount", " 10.5 ")
	to := w.post("/console/money/recharges", form)
	if again := w.post("/console/money/recharges", form); again != to {
		t.Errorf("a double click leads to %s, want %s", again, to)
	}
	path, _, _ := strings.Cut(to, "?")
	order := strings.TrimPrefix(path, "/console/money/recharges/")
	body := w.get(path)
	address := byID(t, body, "address")
	if byID(t, body, "to-send") != "10.50 USDT" || !strings.Contains(body, `hx-get="`+path+`"`) || !strings.Contains(body, `http-equiv="refresh"`) {
		t.Errorf("the order is\n%s", body)
	}
	if got := qrscan.Read(t, []byte(w.get(path+"/qr.png"))); got.Text != address {
		t.Errorf("the code is %s, want %s", got, address)
	}
	state := func() string {
		apptest.OK(t, w.watcher.Watch(context.Background()))
		return byID(t, w.get(path), "state")
	}
	w.chain.Send(fake.ChainAddress(1), address, apptest.Dollars("10.5"))
	w.chain.Mine(1)
	if got := state(); got != "confirming" {
		t.Errorf("after the transfer the order is %s", got)
	}
	w.chain.Mine(fake.FinalBehind + 1)
	if got := state(); got != "paid" {
		t.Errorf("after it is final the order is %s", got)
	}
	if body := w.get(path); strings.Contains(body, "hx-get") || strings.Contains(body, "refresh") {
		t.Error("a paid order is still read again")
	}
	money := w.get("/console/money")
	if byID(t, money, "balance") != "$10.50" || strings.Count(money, `id="order-`) != 1 || !strings.Contains(byID(t, money, "order-"+order), "paid") {
		t.Errorf("the money is\n%s", money)
	}
	if w.Balance(id) != apptest.Dollars("10.5") {
		t.Errorf("the balance is %s", w.Balance(id))
	}
	for _, amount := range []string{"", "x", "0.5", "10001", "1.001"} {
		if code, body := w.send("POST", "/console/money/recharges", url.Values{"key": {"form_x"}, "amount": {amount}}); code != http.StatusBadRequest ||
			!strings.Contains(byID(t, body, "problem"), "amount") {
			t.Errorf("an amount of %q: %d", amount, code)
		}
	}
}

func TestBudget(t *testing.T) {
	w := open(t, options{})
	id := w.signIn("").Agent.ID
	w.post("/console/money/budget", url.Values{"daily_limit": {"5"}, "total_limit": {""}, "alert_thresholds": {"90, 50%"}, "paused": {"yes"}})
	b, err := w.Wallet.Budget(context.Background(), id)
	if err != nil || b.Daily == nil || *b.Daily != 5*domain.Dollar || b.Total != nil || !b.Paused || len(b.Thresholds) != 2 || b.Thresholds[0] != 50 {
		t.Errorf("the budget is %+v, %v", b, err)
	}
	for name, value := range map[string]string{"daily_limit": "-1", "total_limit": "much", "alert_thresholds": "half"} {
		if code, body := w.send("POST", "/console/money/budget", url.Values{name: {value}}); code != http.StatusBadRequest || !strings.Contains(byID(t, body, "problem"), strings.ReplaceAll(name, "_", " ")) {
			t.Errorf("%s of %s: %d", name, value, code)
		}
	}
	if again, _ := w.Wallet.Budget(context.Background(), id); again.Daily == nil || !again.Paused {
		t.Error("a refused form has changed the budget")
	}
	w.post("/console/money/budget", url.Values{})
	if b, _ = w.Wallet.Budget(context.Background(), id); b.Daily != nil || b.Paused || len(b.Thresholds) != 0 {
		t.Errorf("the empty form leaves %+v", b)
	}
}

func TestTheLedgerAsCSV(t *testing.T) {
	w := open(t, options{})
	id := w.signIn("").Agent.ID
	for i := range 240 {
		reason := "for the test"
		if i == 0 {
			reason = "=1+1"
		}
		_, err := w.Wallet.Adjust(context.Background(), id, domain.Dollar, reason)
		apptest.OK(t, err)
	}
	read := func(path string) [][]string {
		t.Helper()
		all, err := csv.NewReader(bytes.NewReader([]byte(w.get(path)))).ReadAll()
		apptest.OK(t, err)
		return all
	}
	all := read("/console/money/ledger.csv")
	seen := map[string]bool{}
	for _, row := range all[1:] {
		seen[row[0]] = true
	}
	if len(all) != 242 || len(seen) != 241 || all[1][3] != "1" || all[1][4] != "250" || all[240][7] != "'=1+1" || all[241][2] != "trial_grant" {
		t.Errorf("%d rows of %d entries, the first %v, the last %v", len(all), len(seen), all[1], all[len(all)-1])
	}
	if grants := read("/console/money/ledger.csv?type=trial_grant"); len(grants) != 2 {
		t.Errorf("%d rows of trial grants", len(grants))
	}
	if code, _ := w.send("GET", "/console/money/ledger.csv?type=none", nil); code != http.StatusBadRequest {
		t.Errorf("an unknown type: %d", code)
	}
	if body := w.get("/console/money?page=3&type=adjustment"); !strings.Contains(body, "Page 3 of 10") {
		t.Errorf("the third page is\n%s", body)
	}
}

func TestWebhook(t *testing.T) {
	w := open(t, options{})
	w.signIn("")
	if code, body := w.send("POST", "/console/access/webhook/test", url.Values{"key": {"form_1"}}); code != http.StatusBadRequest || !strings.Contains(body, `id="problem"`) {
		t.Errorf("a test without a webhook: %d", code)
	}
	w.cookie = nil
	hook := w.registerWithHook()
	for range 2 {
		w.post("/console/access/webhook/test", url.Values{"key": {"form_1"}})
	}
	w.Buy(hook, apptest.Local)
	body := w.get("/console/access")
	if strings.Count(body, `id="delivery-`) != 2 || strings.Count(body, "Send again") != 1 || !strings.Contains(byID(t, body, "webhook"), "https://example.com/hook") {
		t.Errorf("the deliveries are\n%s", body)
	}
	_, after, _ := strings.Cut(body, `action="/console/access/deliveries/`)
	path, _, _ := strings.Cut(after, `"`)
	form := hidden(t, body, "/console/access/deliveries/"+path)
	again := func() string {
		t.Helper()
		if to := w.post("/console/access/deliveries/"+path, form); to != "/console/access?done=redelivered" {
			t.Errorf("to deliver again leads to %s", to)
		}
		return w.Dump()
	}
	first := again()
	w.Clock.Advance(time.Minute)
	if second := again(); second != first {
		t.Errorf("a second click changes\n%s\nto\n%s", first, second)
	}
	form.Set("key", "form_2")
	if third := again(); third == first {
		t.Error("another click does nothing")
	}
	if code, _ := w.send("POST", "/console/access/webhook/test", url.Values{}); code != http.StatusBadRequest {
		t.Errorf("a form without its key: %d", code)
	}
}

func TestWorkersAndThePassword(t *testing.T) {
	w := open(t, options{})
	id := w.signIn("50").Agent.ID
	s := w.Buy(id, apptest.Local)
	list, _, err := w.Workers.Create(context.Background(),
		workers.Create{AgentID: id, SessionID: s.ID, Names: []string{"one", "two"}})
	apptest.OK(t, err)
	page := "/console/sessions/" + s.ID
	body := w.get(page)
	if got := byID(t, body, "worker-one"); !strings.Contains(got, list[0].Exit.IP.String()) || !strings.Contains(got, "active") {
		t.Errorf("the worker is %s, want %+v", got, list[0])
	}
	form := hidden(t, body, page+"/workers/one/rotate")
	for range 2 {
		if to := w.post(page+"/workers/one/rotate", form); to != page+"?done=worker-rotated" {
			t.Errorf("rotating a worker leads to %s", to)
		}
	}
	one, err := w.Workers.Get(context.Background(), id, s.ID, "one")
	if err != nil || one.Rotations != 1 {
		t.Errorf("two clicks rotated it %d times, %v", one.Rotations, err)
	}
	if code, _ := w.send("POST", page+"/workers/none/rotate", form); code != http.StatusNotFound {
		t.Errorf("an unknown worker: %d", code)
	}
	form = hidden(t, w.get(page+"/password"), page+"/password")
	form.Set("close_connections", "yes")
	for range 2 {
		if to := w.post(page+"/password", form); to != page+"?done=password" {
			t.Errorf("replacing the password leads to %s", to)
		}
	}
	if again := w.Read(id, s.ID); again.PasswordNo != s.PasswordNo+1 || again.Password == s.Password {
		t.Errorf("two clicks made the password number %d of %d", again.PasswordNo, s.PasswordNo)
	}
}

func TestSessionsAreFoundByTheirLabels(t *testing.T) {
	w := open(t, options{})
	id := w.signIn("50").Agent.ID
	red, blue := w.Buy(id, apptest.Local), w.Buy(id, apptest.Local)
	for s, team := range map[string]string{red.ID: "red", blue.ID: "blue"} {
		labels := session.Labels{"team": team}
		_, err := w.Sessions.Change(context.Background(), sessions.Change{AgentID: id, SessionID: s, Labels: &labels})
		apptest.OK(t, err)
	}
	body := w.get("/console/sessions?label=team:red")
	if got := byID(t, body, "session-"+red.ID); !strings.Contains(got, "team:red") || strings.Contains(body, blue.ID) {
		t.Errorf("of the team red are\n%s", body)
	}
	for query, want := range map[string]bool{"label=team:red&risk=low": true, "label=team:red&risk=low&type=static": false,
		"label=team:red&risk=high": false, "label=team:green&risk=low": false} {
		body := w.get("/console/sessions?" + query)
		if strings.Contains(body, `id="session-`+red.ID) != want || strings.Contains(body, blue.ID) {
			t.Errorf("%s: of the team red are\n%s", query, body)
		}
	}
	if code, body := w.send("GET", "/console/sessions?label=red", nil); code != http.StatusBadRequest || !strings.Contains(byID(t, body, "problem"), "label") {
		t.Errorf("a label without a value: %d", code)
	}
}
