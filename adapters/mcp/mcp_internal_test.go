package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/account"
	"agentproxy/domain/connect"
	"agentproxy/test/connectproxy"
)

// scripted answers operations by their path.
type scripted map[string]string

func (scripted) May(string) bool { return true }

func (s scripted) Run(_ context.Context, _, path, _ string, _ []byte) (int, []byte, error) {
	path, _, _ = strings.Cut(path, "?")
	data, known := s[path]
	if !known {
		return 0, nil, errors.New("dial tcp: lookup of a secret host failed")
	}
	return 200, []byte(`{"success":true,"data":` + data + `}`), nil
}

func (scripted) StoreCredentials(context.Context, string) (string, time.Time, error) {
	return "/home/it's me/sess_1.env", time.Time{}, nil
}

func (scripted) Reveal(context.Context, string) ([]connect.Proxy, bool, error) {
	return nil, false, nil
}

// ask calls a tool and reads its answer.
func ask(t *testing.T, b Backend, name, args string) (text string, refused bool) {
	t.Helper()
	i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name })
	r := tools[i].call(t.Context(), slog.New(slog.DiscardHandler), &api{Backend: b, secrets: &secrets{}}, json.RawMessage(args))
	body, err := json.Marshal(r.Content[0])
	if err != nil {
		t.Fatal(err)
	}
	var content struct{ Text string }
	if err := json.Unmarshal(body, &content); err != nil {
		t.Fatal(err)
	}
	return content.Text, r.IsError
}

func TestTableOfTools(t *testing.T) {
	for _, tool := range tools {
		if !slices.Contains(account.Scopes, account.Scope(tool.scope)) {
			t.Errorf("%s needs the unknown permission %s", tool.name, tool.scope)
		}
		if tool.title == "" || tool.description == "" || tool.run == nil {
			t.Errorf("%s is incomplete", tool.name)
		}
		if tool.reads != strings.HasSuffix(tool.scope, ":read") && tool.name != "connect" {
			t.Errorf("%s: reads %v with %s", tool.name, tool.reads, tool.scope)
		}
		if buys := slices.Contains([]string{"create_session", "renew_session"}, tool.name); buys {
			for _, guard := range []string{"max_cost", "purchase_id"} {
				if !slices.ContainsFunc(tool.args, func(f field) bool { return f.name == guard && f.required }) {
					t.Errorf("%s does not require %s", tool.name, guard)
				}
			}
		}
		if tool.destroys != (tool.name == "end_session") || tool.open != (tool.name == "check_proxy") ||
			tool.repeatable != (tool.name != "report") {
			t.Errorf("%s has other hints than documented", tool.name)
		}
	}
}

func TestArgumentsAreJudged(t *testing.T) {
	for args, want := range map[string]string{
		`[]`: "arguments", `"x"`: "arguments", `{}`: "session_id is required", `{"session_id":null}`: "session_id is required",
		`{"session_id":1}`:                                                         "session_id must be of type string",
		`{"session_id":"s","events":{}}`:                                           "events must be an array of objects",
		`{"session_id":"s","events":[]}`:                                           "events must have 1 to 50 items",
		`{"session_id":"s","events":[null]}`:                                       "events must be an array of objects",
		`{"session_id":"s","events":[{}]}`:                                         "events[0].event_type is required",
		`{"session_id":"s","events":[{"event_type":"x"}]}`:                         "events[0].event_type must be one of",
		`{"session_id":"s","events":[{"event_type":"success","status_code":1.5}]}`: "events[0].status_code must be of type integer",
		`{"session_id":"s","events":[{"event_type":"success","ak_0123456789012345678901234567890123456789":1}]}`: "an argument is unknown",
	} {
		text, refused := ask(t, scripted{}, "report", args)
		if !refused || !strings.Contains(text, want) || strings.Contains(text, "ak_") {
			t.Errorf("%s: refused %v, want %q: %s", args, refused, want, text)
		}
	}
	for _, key := range []string{"", " x", "x ", "a\nb", "é", strings.Repeat("x", 256)} {
		args, _ := json.Marshal(map[string]any{"session_id": "s", "max_cost": 1, "purchase_id": key})
		if text, refused := ask(t, scripted{}, "renew_session", string(args)); !refused || !strings.Contains(text, "purchase_id") {
			t.Errorf("%q is taken as a key: %s", key, text)
		}
	}
}

func TestScrub(t *testing.T) {
	const password = "abcdefghijklmnopqrstuvwxyz234567"
	key := "ak_" + strings.Repeat("Aa1", 14) + "x"
	for text, want := range map[string]string{
		"key " + key + ".":                       "key [hidden].",
		"the password " + password + " failed":   "the password [hidden] failed",
		"http://u:" + password + "@h:1/":         "http://u:***@h:1/",
		"socks5://me:p%40ss!@h:1":                "socks5://me:***@h:1",
		`http:\/\/me:short@h:1`:                  `http:\/\/me:***@h:1`,
		"eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl": "[hidden]",
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": "[hidden]",
		"http://u:***@h:1":                       "http://u:***@h:1",
		"sess_abcdefghij0123456789 at 12:30@x":   "sess_abcdefghij0123456789 at 12:30@x",
		"https://shop.example:8443/a@b":          "https://shop.example:8443/a@b",
	} {
		if got := scrub(text); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
	s := &secrets{}
	s.add(`pa"ss\word`)
	if got := s.hide(`{"message":"pa\"ss\\word"}`); strings.Contains(got, "word") {
		t.Errorf("an escaped secret is shown: %s", got)
	}
}

// TestAnswersHideWhatOperationsReturn gives an upstream's own password, which looks like a word.
func TestAnswersHideWhatOperationsReturn(t *testing.T) {
	const proxy = `{"protocol":"http","host":"h","port":1,"username":"u","password":"Sunflower","full_url":"http://u:Sunflower@h:1"}`
	b := scripted{
		"/sessions/s":         `{"session_id":"s","status":"active","proxy":` + proxy + `,"ip_list":[]}`,
		"/sessions/s/connect": `{"client":"curl","snippet":"curl -x http://u:Sunflower@h:1","proxies":[` + proxy + `]}`,
		"/sessions/s/health":  `{"recommendation":"ok"}`,
		"/sessions/s/events":  `{"items":[{"type":"block","target_host":"Sunflower","status_code":403,"error_message":"Sunflower"}]}`,
	}
	for _, name := range []string{"get_session", "connect"} {
		text, refused := ask(t, b, name, `{"session_id":"s"}`)
		if refused || strings.Contains(text, "Sunflower") {
			t.Errorf("%s: refused %v: %s", name, refused, text)
		}
	}
	if text, _ := ask(t, b, "connect", `{"session_id":"s"}`); !strings.Contains(text, `. '/home/it'\\''s me/sess_1.env'`) {
		t.Errorf("the file is not quoted for a shell: %s", text)
	}
}

// TestConnectPrefersTLS shows the address with TLS, its password masked, and a snippet that uses it.
func TestConnectPrefersTLS(t *testing.T) {
	const proxy = `{"protocol":"http","host":"h","port":1,"username":"u","password":"Sunflower","http_url":"http://u:Sunflower@h:1",` +
		`"https_url":"https://u:Sunflower@h:1"}`
	b := scripted{"/sessions/s": `{"session_id":"s","status":"active","proxy":` + proxy + `,"ip_list":[]}`,
		"/sessions/s/connect": `{"client":"curl","snippet":"curl -x 'https://u:Sunflower@h:1'","proxies":[` + proxy + `]}`}
	text, refused := ask(t, b, "connect", `{"session_id":"s"}`)
	for _, want := range []string{`-x 'https://u:***@h:1'`, `"protocol":"http"`, `"https_url":"https://u:***@h:1"`} {
		if refused || !strings.Contains(text, want) || strings.Contains(text, "Sunflower") {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	b["/sessions/s"] = strings.Replace(b["/sessions/s"], `"https://u:Sunflower@h:1"`, "null", 1)
	b["/sessions/s/connect"] = strings.Replace(b["/sessions/s/connect"], "-x 'https", "-x 'http", 1)
	if text, _ := ask(t, b, "connect", `{"session_id":"s"}`); strings.Contains(text, "https_url") || strings.Contains(text, "https://u") {
		t.Errorf("without TLS: %s", text)
	}
}

// TestEndingStatesItsCost checks the answer about fixed IPs, whose time does not come back.
func TestEndingStatesItsCost(t *testing.T) {
	b := scripted{"/sessions/s/terminate": `{"session_id":"s","status":"terminated","cost":{"charged":2,"forfeited":1.5}}`}
	if text, refused := ask(t, b, "end_session", `{"session_id":"s"}`); refused || !strings.Contains(text, `"forfeited":1.5`) ||
		!strings.Contains(text, "did not come back") {
		t.Errorf("refused %v: %s", refused, text)
	}
	b["/sessions/s/terminate"] = `{"session_id":"s","status":"terminated","cost":{"charged":2,"forfeited":0}}`
	if text, refused := ask(t, b, "end_session", `{"session_id":"s"}`); refused || strings.Contains(text, "did not come back") {
		t.Errorf("refused %v: %s", refused, text)
	}
}

// recording notes the paths that a tool calls.
type recording struct {
	scripted
	paths *[]string
}

func (r recording) Run(ctx context.Context, method, path, key string, body []byte) (int, []byte, error) {
	*r.paths = append(*r.paths, path)
	return r.scripted.Run(ctx, method, path, key, body)
}

func TestWorkersMayBeANumber(t *testing.T) {
	const proxy = `{"protocol":"http","host":"h","port":1,"username":"u","password":"secret"}`
	for args, want := range map[string]string{`{"session_id":"s","workers":2}`: "workers=2", `{"session_id":"s","workers":"2"}`: "workers=2",
		`{"session_id":"s","workers":2.5}`: "", `{"session_id":"s","workers":-1}`: "", `{"session_id":"s","workers":[1]}`: ""} {
		var paths []string
		b := recording{scripted{"/sessions/s": `{"session_id":"s","status":"active","proxy":` + proxy + `}`,
			"/sessions/s/connect": `{"client":"curl","proxies":[` + proxy + `]}`}, &paths}
		text, refused := ask(t, b, "connect", args)
		if refused != (want == "") || !strings.Contains(strings.Join(paths, " "), want) || refused && !strings.Contains(text, "workers must be") {
			t.Errorf("%s: refused %v, called %v: %s", args, refused, paths, text)
		}
	}
}

// TestRefusalsHaveTheNamesOfArguments holds because a model does not know the fields of the API.
func TestRefusalsHaveTheNamesOfArguments(t *testing.T) {
	err := inArguments(&refusal{Code: "INVALID_REQUEST", Message: "config.quantity is required; config.rotation.mode is unknown",
		Details: map[string]any{"fields": []any{map[string]any{"field": "config.quantity", "issue": "is required"},
			map[string]any{"field": "country_code", "issue": "must be a code"}}}})
	text, _ := json.Marshal(refusalOf(err))
	if got := string(text); strings.Contains(got, "config.") || strings.Contains(got, "country_code") ||
		!strings.Contains(got, `"message":"quantity is required; rotation is unknown"`) || !strings.Contains(got, `"field":"country"`) {
		t.Error(got)
	}
	other := &refusal{Code: "PRICE_MISMATCH", Message: "config.x"}
	if inArguments(other) != error(other) {
		t.Error("another refusal is changed")
	}
}

// TestAnUntrustedPageIsNamed fetches a page whose certificate no authority signed.
func TestAnUntrustedPageIsNamed(t *testing.T) {
	t.Parallel()
	page := httptest.NewTLSServer(http.NotFoundHandler())
	page.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(page.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up, err := net.Dial("tcp", r.Host)
		if err != nil {
			return
		}
		connectproxy.Serve(w, up.(*net.TCPConn))
	}))
	t.Cleanup(proxy.Close)
	_, err := Fetch(t.Context(), proxy.URL, page.URL)
	if r := refusalOf(err); r.Retryable || !strings.Contains(r.Message, "x509: ") {
		t.Errorf("%+v", r)
	}
}

func TestUnreachableServiceIsARetryableRefusal(t *testing.T) {
	text, refused := ask(t, scripted{}, "get_account", "")
	if !refused || !strings.Contains(text, `"retryable":true`) || strings.Contains(text, "dial") {
		t.Errorf("refused %v: %s", refused, text)
	}
}

// faulty panics, as a fault of the program would.
type faulty struct{ scripted }

func (faulty) Run(context.Context, string, string, string, []byte) (int, []byte, error) {
	panic("a fault")
}

func TestPanicIsARefusal(t *testing.T) {
	if text, refused := ask(t, faulty{}, "get_account", ""); !refused || !strings.Contains(text, "INTERNAL_ERROR") {
		t.Errorf("refused %v: %s", refused, text)
	}
}

// TestLargestAnswersFit gives the largest lists that the tools show.
func TestLargestAnswersFit(t *testing.T) {
	var countries, items, best []string
	for n := range 249 {
		countries = append(countries, `"`+string(rune('A'+n/26%26))+string(rune('A'+n%26))+`"`)
	}
	for n := range 40 {
		no := `"product_with_a_long_name_` + strings.Repeat("x", 30) + string(rune('a'+n%26)) + string(rune('a'+n/26)) + `"`
		items = append(items, `{"product_no":`+no+`,"type":"dynamic","price":1.234567,"unit":"GB","available":true,
			"countries":[`+strings.Join(countries, ",")+`],"cities":[`+strings.Repeat(`"a_city_of_some_length",`, 50)+`"x"]}`)
		best = append(best, `{"product_no":`+no+`,"reasons":["`+strings.Repeat("a reason ", 20)+`"],"estimated_cost":1.5}`)
	}
	b := scripted{
		"/products":           `{"items":[` + strings.Join(items, ",") + `],"pagination":{"total_pages":1}}`,
		"/products/recommend": `{"items":[` + strings.Join(best, ",") + `]}`,
	}
	largest := 0
	defer func() { t.Logf("the largest answer has %d of %d bytes", largest, maxAnswer) }()
	text, refused := ask(t, b, "find_products", `{"budget":5}`)
	largest = max(largest, len(text))
	if refused || len(text) > maxAnswer {
		t.Errorf("refused %v, %d bytes", refused, len(text))
	}
	var ips []string
	for range 100 {
		ips = append(ips, `{"ip":"2001:0db8:85a3:0000:0000:8a2e:0370:7334","username":"`+strings.Repeat("u", 60)+`","password":"secret"}`)
	}
	b["/sessions/s"] = `{"session_id":"s","status":"active","proxy":{"protocol":"http","host":"` + strings.Repeat("h", 253) +
		`","port":65535,"username":"` + strings.Repeat("u", 60) + `","password":"secret"},"ip_list":[` + strings.Join(ips, ",") + `]}`
	worker := func(n int) string {
		return fmt.Sprintf(`{"worker":"login_%d","protocol":"http","host":"h","port":65535,"username":"u","password":"secret"}`, n)
	}
	var workers, names []string
	for n := range mostWorkers + 1 {
		workers, names = append(workers, worker(n)), append(names, fmt.Sprintf("login_%d", n))
	}
	use := connect.Use{Session: "s", Workers: names[:mostWorkers], Proxy: connect.Proxy{Protocol: "https",
		Host: strings.Repeat("h", 253), Port: 65535, Username: strings.Repeat("u", 60), Password: "secret"}}
	for _, client := range connect.Names() {
		known, _ := connect.Find(client)
		snippet, err := json.Marshal(known.Snippet(use))
		if err != nil {
			t.Fatal(err)
		}
		b["/sessions/s/connect"] = `{"client":"` + client + `","snippet":` + string(snippet) + `,"proxies":[` +
			strings.Join(workers[:mostWorkers], ",") + `]}`
		text, refused := ask(t, b, "connect", `{"session_id":"s","client":"`+client+`"}`)
		largest = max(largest, len(text))
		if refused || len(text) > maxAnswer || !strings.Contains(text, "login_99") {
			t.Errorf("%s: refused %v, %d bytes", client, refused, len(text))
		}
	}
	b["/sessions/s/connect"] = `{"client":"curl","proxies":[` + strings.Join(workers, ",") + `]}`
	if text, refused := ask(t, b, "connect", `{"session_id":"s"}`); !refused || !strings.Contains(text, "at most 100") {
		t.Errorf("too many workers: refused %v: %s", refused, text)
	}
}
