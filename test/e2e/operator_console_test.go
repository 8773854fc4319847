package e2e_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"agentproxy/adapters/apiclient"
)

// hostile is what a stranger calls himself.
const hostile = `"><img src=x onerror=alert(1)>`

// sent is the answer to a form of the operator's console, after its redirect.
type sent struct {
	status int
	at     string // the path of the page
	text   string
}

// form opens the form of an action and returns its fields, which are sent by press.
func (s *service) form(action, query string) url.Values {
	s.t.Helper()
	status, text := s.page("/do/" + action + "?" + query)
	if status != http.StatusOK {
		s.t.Fatalf("the form of %s: %d", action, status)
	}
	values := url.Values{}
	for _, m := range regexp.MustCompile(`<input[^>]* name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		values.Set(m[1], html.UnescapeString(m[2]))
	}
	return values
}

// press sends a form with further fields, as the operator who is sure.
func (s *service) press(action string, values url.Values, fields string, headers ...string) sent {
	s.t.Helper()
	more, err := url.ParseQuery(fields)
	if err != nil {
		s.t.Fatal(err)
	}
	for name := range more {
		values.Set(name, more.Get(name))
	}
	req, err := http.NewRequestWithContext(s.t.Context(), "POST", "http://"+s.admin+"/do/"+action, strings.NewReader(values.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("operator", adminPassword)
	if s.pressedBy != nil {
		s.pressedBy(req)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return sent{resp.StatusCode, resp.Request.URL.Path, string(text)}
}

// figure returns the text of an element of a page by its id.
func figure(t *testing.T, page, id string) string {
	t.Helper()
	_, after, found := strings.Cut(page, `id="`+id+`">`)
	if !found {
		t.Fatalf("the page has no %s", id)
	}
	text, _, _ := strings.Cut(after, "</")
	text, _, _ = strings.Cut(text, "<small>")
	return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(text, ""))
}

// TestTheOperatorsConsole is an operator's way through the console by forms and links alone, as a browser
// without scripts sends them.
func TestTheOperatorsConsole(t *testing.T) {
	t.Parallel()
	s := serve(t, "AGENTPROXY_DEVCHAIN_BLOCK_MS=100", "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")
	var a struct {
		AgentID string `json:"agent_id"`
		APIKey  string `json:"api_key"`
	}
	s.must(201, "POST", "/account/register", "", fmt.Sprintf(`{"name":%q}`, hostile)).into(t, &a)
	var addr, traffic apiclient.Session
	s.must(201, "POST", "/sessions", a.APIKey, static("sta_isp_1", 1)).into(t, &addr)
	s.must(201, "POST", "/sessions", a.APIKey, `{"session_type":"dynamic","product_no":"dyn_fast_1","traffic_gb":1}`).into(t, &traffic)
	exit := s.exitOf(traffic.Proxy.FullURL)

	_, overview := s.page("/")
	if got := figure(t, overview, "active-sessions"); got != "2" {
		t.Errorf("%s sessions are live", got)
	}
	_, list := s.page("/agents")
	if !strings.Contains(overview, `href="/agents"`) || !strings.Contains(list, `href="/agents/`+a.AgentID+`"`) {
		t.Error("nothing leads to the agent")
	}

	// A correction, sent twice by one form, and then by a page of another site.
	correction := s.form("adjust", "subject="+a.AgentID)
	fields := "amount=1.50&sure=yes&reason=" + url.QueryEscape("sorry "+hostile)
	for range 2 {
		r := s.press("adjust", correction, fields)
		if r.status != 200 || r.at != "/agents/"+a.AgentID || !strings.Contains(r.text, "The correction is booked.") {
			t.Fatalf("the correction: %d at %s", r.status, r.at)
		}
		_, ledger, _ := strings.Cut(r.text, `id="ledger"`)
		if strings.Count(ledger, "$1.50") != 1 || !strings.Contains(ledger, html.EscapeString("sorry "+hostile)) {
			t.Errorf("the ledger is %.2000s", ledger)
		}
	}
	for name, headers := range map[string][]string{"another origin": {"Origin", "https://evil.example"},
		"another site": {"Sec-Fetch-Site", "cross-site"}} {
		if r := s.press("adjust", s.form("adjust", "subject="+a.AgentID), fields, headers...); r.status != 403 {
			t.Errorf("a form of %s: %d", name, r.status)
		}
	}
	if r := s.press("adjust", s.form("adjust", "subject="+a.AgentID), fields, "Host", "evil.example"); r.status != 421 {
		t.Errorf("another name of the host: %d", r.status)
	}
	for _, lack := range []string{"sure=", "reason=", "amount=x"} {
		values := s.form("adjust", "subject="+a.AgentID)
		all, _ := url.ParseQuery(fields)
		for k := range all {
			values.Set(k, all.Get(k))
		}
		if r := s.press("adjust", values, lack); r.status != 400 || !strings.Contains(r.text, `id="problem"`) {
			t.Errorf("with %s: %d", lack, r.status)
		}
	}

	// A part of the session is given back, then it is ended, and the report is what the ledger has.
	if r := s.press("refund", s.form("refund", "subject="+addr.SessionID), "percent=50&sure=yes&reason=slow"); r.at != "/sessions/"+addr.SessionID {
		t.Errorf("the refund: %d at %s", r.status, r.at)
	}
	r := s.press("session-end", s.form("session-end", "subject="+addr.SessionID), "sure=yes&reason=abuse")
	if got := figure(t, r.text, "status"); got != "terminated" || !strings.Contains(r.text, "operator request") {
		t.Errorf("the session is %s", got)
	}
	_, money := s.page("/money?by=agent")
	report := s.object("report", "margin", "--by", "agent")
	if got, want := figure(t, money, "revenue"), report["ledger"].(map[string]any)["revenue"]; got != dollars(fmt.Sprint(want)) {
		t.Errorf("the page has a revenue of %s, the ledger %s", got, want)
	}
	if got, want := figure(t, money, "margin"), report["total"].(map[string]any)["margin"]; got != dollars(fmt.Sprint(want)) {
		t.Errorf("the page has a margin of %s, the report %s", got, want)
	}

	// A recharge is paid on the development chain.
	o := s.recharge(a.APIKey, "12.5")
	paid := "to=" + o.Wallet + "&amount=12.5&sure=yes&reason=test"
	if r := s.press("devchain-send", s.form("devchain-send", ""), paid); r.status != 200 {
		t.Errorf("the transfer: %d", r.status)
	}
	within(t, soon, "the recharge is paid", func() bool {
		_, text := s.page("/recharges/" + o.OrderID)
		return figure(t, text, "status") == "paid" && figure(t, text, "received") == "$12.50"
	})
	if _, text := s.page("/recharges/addresses.csv"); !strings.Contains(text, "1,"+o.Wallet+",12.5,"+a.AgentID) {
		t.Errorf("the addresses are %s", text)
	}

	// Who used an exit, the proof, a copy of the database.
	asked := "exit=" + exit + "&minutes=5&sure=yes&reason=police&at=" + time.Now().UTC().Format(time.RFC3339)
	within(t, soon, "the exit is found", func() bool {
		r := s.press("exits-lookup", s.form("exits-lookup", ""), asked)
		return strings.Contains(r.text, "/agents/"+a.AgentID)
	})
	if r := s.press("verify", s.form("verify", ""), ""); r.status != 200 || figure(t, r.text, "faults") != "0" {
		t.Errorf("the proof: %d", r.status)
	}
	for name, want := range map[string]int{"copy.db": 200, "../copy.db": 400, "": 400} {
		if r := s.press("backup", s.form("backup", ""), "sure=yes&reason=weekly&file="+name); r.status != want {
			t.Errorf("a copy to %q: %d", name, r.status)
		}
	}
	if r := s.press("backup", s.form("backup", ""), "sure=yes&reason=weekly&file=copy.db"); r.status != 400 || !strings.Contains(r.text, "exists") {
		t.Errorf("a copy over a file: %d", r.status)
	}

	kept := map[string]int{}
	for _, x := range s.rows("audit", "list", "--by", "operator") {
		kept[fmt.Sprint(x["action"])]++
		if x["via"] != "console" || x["reason"] == "" {
			t.Errorf("kept is %v", x)
		}
	}
	for action, want := range map[string]int{"adjust": 1, "refund": 1, "session end": 1, "devchain send": 1, "backup": 1} {
		if kept[action] != want {
			t.Errorf("%s is kept %d times", action, kept[action])
		}
	}
	for _, path := range []string{"/", "/agents", "/agents/" + a.AgentID, "/agents?search=" + url.QueryEscape(hostile), "/audit", "/exits",
		"/sessions/" + addr.SessionID} {
		if _, text := s.page(path); strings.Contains(text, "<img src=x") {
			t.Errorf("%s shows what a stranger wrote as it is", path)
		}
	}
	s.verify()
}

// dollars returns an amount of a command as pages show it.
func dollars(amount string) string {
	whole, part, _ := strings.Cut(amount, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "−", whole[1:]
	}
	return sign + "$" + whole + "." + part + strings.Repeat("0", max(2-len(part), 0))
}

// TestTheOperatorsConsoleInABrowser looks at the pages in every width and setting, and books a correction
// by keyboard and without scripts.
func TestTheOperatorsConsoleInABrowser(t *testing.T) {
	t.Parallel()
	s := serve(t, "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")
	key, agent := s.register(strings.Repeat("w", 100))
	var bought apiclient.Session
	s.must(201, "POST", "/sessions", key, static("sta_isp_1", 1)).into(t, &bought)
	o := s.recharge(key, "12.5")
	onAdmin := *s
	onAdmin.api = s.admin
	b := onAdmin.browse()
	b.scripts(false)
	b.visit("/do/adjust?subject=" + agent)
	b.do(chromedp.SendKeys(chromedp.ID("password"), adminPassword+"\r"), chromedp.WaitReady(chromedp.ID("f-amount")))
	b.do(chromedp.SendKeys(chromedp.ID("f-amount"), "2.5"), chromedp.KeyEvent("\ta gift\t \t\r"), chromedp.WaitReady(chromedp.ID("ledger")))
	b.scripts(true)
	if got := b.text("balance"); got != "$11.50" {
		t.Errorf("after the correction the balance is %s", got)
	}
	b.suits("/", "/agents", "/agents/"+agent, "/agents/referrers", "/sessions", "/sessions/"+bought.SessionID, "/money", "/recharges",
		"/recharges/"+o.OrderID, "/recharges/addresses", "/sellers", "/sellers/embedded", "/jobs", "/exits", "/policy?host=example.com",
		"/audit", "/do/adjust?subject="+agent)
	for _, width := range []int64{360, 1280} {
		b.looksWell("/sign-in?next=%2Faudit", width, "light", "dark")
	}
	b.visit("/audit")
	b.press("sign-out", "password")
	b.visit("/audit")
	if at := evaluate[string](b, "location.pathname"); at != "/sign-in" {
		t.Errorf("after the end of the sign-in a page is at %s", at)
	}
}
