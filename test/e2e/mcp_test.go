package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// client returns the command of the client with a home of its own and the service's address.
func (s *service) client(home, key string, args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(apx, args...)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "AGENTPROXY_URL=http://" + s.api}
	if key != "" {
		cmd.Env = append(cmd.Env, "AGENTPROXY_API_KEY="+key)
	}
	return cmd
}

// The eras of the protocol: with a handshake, and without one.
const (
	handshakeEra = "2025-11-25"
	requestEra   = "2026-07-28"
)

// withKey adds the credential to each request.
type withKey struct{ name, value string }

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(k.name, k.value)
	return http.DefaultTransport.RoundTrip(r)
}

// toolsOver connects a client of tools by a transport.
func toolsOver(t *testing.T, era string, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != era {
		t.Errorf("the protocol is %s, want %s", got, era)
	}
	return session
}

func (s *service) toolsByHTTP(era string, credential http.RoundTripper) *mcp.ClientSession {
	s.t.Helper()
	return toolsOver(s.t, era, &mcp.StreamableClientTransport{Endpoint: "http://" + s.api + "/mcp",
		HTTPClient: &http.Client{Transport: credential}, DisableStandaloneSSE: true, MaxRetries: -1})
}

func (s *service) toolsByStdio(era, key, home string) *mcp.ClientSession {
	s.t.Helper()
	cmd := s.client(home, key, "mcp")
	cmd.Stderr = os.Stderr
	return toolsOver(s.t, era, &mcp.CommandTransport{Command: cmd})
}

// eachTransport runs a test for each transport and era.
func eachTransport(t *testing.T, s *service, key string, test func(t *testing.T, tools *mcp.ClientSession, home string)) {
	for _, era := range []string{handshakeEra, requestEra} {
		t.Run("http "+era, func(t *testing.T) {
			s := *s
			s.t = t
			test(t, s.toolsByHTTP(era, withKey{"X-API-Key", key}), "")
		})
		t.Run("stdio "+era, func(t *testing.T) {
			s := *s
			s.t = t
			home := t.TempDir()
			test(t, s.toolsByStdio(era, key, home), home)
		})
	}
}

// toolAnswer is the text of an answer, read.
type toolAnswer struct {
	text    string
	refused bool
	fields  map[string]any
	result  *mcp.CallToolResult
}

func (a toolAnswer) str(name string) string {
	v, _ := a.fields[name].(string)
	return v
}

func (a toolAnswer) num(name string) float64 {
	v, _ := a.fields[name].(float64)
	return v
}

// tool calls a tool and reads the text of its answer, which is one JSON object.
func tool(ctx context.Context, c *mcp.ClientSession, name string, args map[string]any) (toolAnswer, error) {
	r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return toolAnswer{}, err
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		return toolAnswer{}, fmt.Errorf("%s answers %T first", name, r.Content[0])
	}
	a := toolAnswer{text: text.Text, refused: r.IsError, result: r}
	return a, json.Unmarshal([]byte(text.Text), &a.fields)
}

// use calls a tool that must succeed, and holds its answer against the bounds of every answer.
func use(t *testing.T, c *mcp.ClientSession, name string, args map[string]any) toolAnswer {
	t.Helper()
	a, err := tool(t.Context(), c, name, args)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if a.refused || a.str("next_step") == "" || len(a.text) > 8000 {
		t.Fatalf("%s: refused %v, %d bytes: %s", name, a.refused, len(a.text), a.text)
	}
	t.Logf("%-16s %5d bytes", name, len(a.text))
	return a
}

// refusal calls a tool that must refuse with a code.
func refusal(t *testing.T, c *mcp.ClientSession, name, code string, args map[string]any) toolAnswer {
	t.Helper()
	a, err := tool(t.Context(), c, name, args)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !a.refused || a.str("code") != code || a.str("message") == "" || a.str("how_to_fix") == "" || len(a.text) > 8000 {
		t.Fatalf("%s: refused %v, want %s: %s", name, a.refused, code, a.text)
	}
	return a
}

// toolNames are the tools of an API key, as tools/list orders them.
var toolNames = []string{"check_proxy", "connect", "create_session", "diagnose", "end_session", "find_products", "get_account",
	"get_session", "list_sessions", "quote", "recharge", "renew_session", "report", "rotate", "wait_for_events"}

func TestToolsOverBothTransports(t *testing.T) {
	t.Parallel()
	s := shared(t, "AGENTPROXY_TRIAL_BALANCE=100")
	key, _ := s.register("tools")
	eachTransport(t, s, key, func(t *testing.T, c *mcp.ClientSession, _ string) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			a := tool.Annotations
			if tool.Title == "" || tool.Description == "" || a == nil || a.DestructiveHint == nil || a.OpenWorldHint == nil {
				t.Errorf("%s lacks a title, a description or a hint", tool.Name)
			}
		}
		if !slices.Equal(names, toolNames) {
			t.Errorf("the tools are %v", names)
		}
		text, err := json.Marshal(list)
		if err != nil || len(text) > 12000 {
			t.Errorf("tools/list has %d bytes, %v", len(text), err)
		}
		t.Logf("%-16s %5d bytes, %d tools", "tools/list", len(text), len(list.Tools))
		useEveryTool(t, c)
	})
	s.verify()
}

// useEveryTool buys, uses and ends a session of each type by the tools alone.
func useEveryTool(t *testing.T, c *mcp.ClientSession) {
	before := use(t, c, "get_account", nil)
	found := use(t, c, "find_products", map[string]any{"use_case": "web_scraping", "country": "US", "gb": 1, "budget": 50})
	products := found.fields["products"].([]any)
	if len(products) == 0 || len(products) > 8 {
		t.Fatalf("found %d products", len(products))
	}
	wish := map[string]any{"product_no": "dyn_fast_1", "traffic_gb": 0.5, "country": "US"}
	cost := use(t, c, "quote", wish)
	id := t.Name()
	wish["max_cost"], wish["purchase_id"] = cost.num("cost"), id
	bought := use(t, c, "create_session", wish)
	again := use(t, c, "create_session", wish)
	session := bought.str("session_id")
	if session == "" || again.str("session_id") != session || bought.num("cost") != cost.num("cost") {
		t.Errorf("bought %s, again %s, quoted %s", bought.text, again.text, cost.text)
	}
	if structured, _ := json.Marshal(bought.result.StructuredContent); string(structured) == "null" {
		t.Error("the answer of create_session has no structuredContent")
	}
	one := map[string]any{"session_id": session}
	checked := use(t, c, "check_proxy", one)
	facts, _ := checked.fields["exit"].(map[string]any)
	if checked.str("exit_ip") == "" || facts["ip"] != checked.str("exit_ip") || facts["network_type"] != "unknown" {
		t.Errorf("checked %s", checked.text)
	}
	for _, name := range []string{"country", "agreed", "region", "city", "timezone", "asn", "as_name", "listed", "risk"} {
		if value, there := facts[name]; !there || value != nil { // there are no sources of facts
			t.Errorf("%s of the exit is %v", name, value)
		}
	}
	connected := use(t, c, "connect", map[string]any{"session_id": session, "client": "playwright"})
	if connected.str("password") != "***" || !strings.Contains(connected.str("snippet"), `password: "***"`) {
		t.Errorf("connected %s", connected.text)
	}
	turned := use(t, c, "rotate", map[string]any{"session_id": session, "reason": "captcha", "request_id": id})
	if is := turned.str("new_exit"); is == "" || is == turned.str("old_exit") {
		t.Errorf("rotated %s", turned.text)
	}
	use(t, c, "report", map[string]any{"session_id": session, "events": []any{
		map[string]any{"event_type": "http_error", "status_code": 403, "target_host": "shop.example"},
		map[string]any{"event_type": "success", "status_code": 200, "latency_ms": 31.5}}})
	state := use(t, c, "get_session", one)
	if failures := state.fields["last_failures"].([]any); len(failures) != 1 || failures[0].(map[string]any)["status_code"] != 403.0 {
		t.Errorf("failures %v", failures)
	}
	if a := use(t, c, "list_sessions", map[string]any{"type": "dynamic"}); a.num("total") < 1 {
		t.Errorf("listed %s", a.text)
	}
	useWorkers(t, c, session)
	useStatic(t, c)
	ended := use(t, c, "end_session", one)
	if ended.str("status") != "terminated" || ended.fields["cost"].(map[string]any)["held"] != 0.0 {
		t.Errorf("ended %s", ended.text)
	}
	order := use(t, c, "recharge", map[string]any{"amount": 25, "purchase_id": id})
	if picture, ok := order.result.Content[len(order.result.Content)-1].(*mcp.ImageContent); !ok || picture.MIMEType != "image/png" {
		t.Error("the recharge has no QR code")
	}
	events := use(t, c, "wait_for_events", map[string]any{"types": "session.terminated", "seconds": 20})
	if items, _ := events.fields["items"].([]any); len(items) == 0 || events.str("next") == "" {
		t.Errorf("the events are %s", events.text)
	}
	refusal(t, c, "wait_for_events", "INVALID_REQUEST", map[string]any{"after": "ev_x"})
	if after := use(t, c, "get_account", nil); after.num("held") != before.num("held") {
		t.Errorf("held %v before and %v after", before.num("held"), after.num("held"))
	}
	refusal(t, c, "get_session", "SESSION_NOT_FOUND", map[string]any{"session_id": "sess_none"})
	refusal(t, c, "quote", "PRODUCT_NOT_FOUND", map[string]any{"product_no": "none"})
	refusal(t, c, "create_session", "INVALID_REQUEST", map[string]any{"product_no": "dyn_fast_1", "max_cost": 1})
	wish["purchase_id"], wish["max_cost"] = id+" dear", 0.01
	refusal(t, c, "create_session", "PRICE_MISMATCH", wish)
	near := refusal(t, c, "quote", "INSUFFICIENT_BALANCE", map[string]any{"product_no": "dyn_fast_1", "traffic_gb": 900})
	if near.fields["details"].(map[string]any)["nearest"] == nil {
		t.Errorf("nothing is near: %s", near.text)
	}
}

// useWorkers uses workers of a dynamic session: it connects them, tries and rotates one, and reports for it.
func useWorkers(t *testing.T, c *mcp.ClientSession, session string) {
	t.Helper()
	a := use(t, c, "connect", map[string]any{"session_id": session, "client": "requests", "workers": "100", "country": "US"})
	if name := a.str("username"); !strings.HasSuffix(name, "-country-us-session-w1") || !strings.Contains(a.str("snippet"), `"w100"`) {
		t.Errorf("connected %s", a.text)
	}
	worker := map[string]any{"session_id": session, "worker": "w1"}
	refusal(t, c, "rotate", "WORKER_NOT_FOUND", worker)
	checked := use(t, c, "check_proxy", worker)
	worker["request_id"] = t.Name()
	turned := use(t, c, "rotate", worker)
	again := use(t, c, "rotate", worker)
	if turned.str("old_exit") != checked.str("exit_ip") || turned.str("new_exit") == turned.str("old_exit") || again.str("new_exit") != turned.str("new_exit") || turned.num("rotations") != 1 {
		t.Errorf("checked %s, rotated %s, again %s", checked.text, turned.text, again.text)
	}
	report := func(worker string) map[string]any {
		return map[string]any{"session_id": session, "events": []any{
			map[string]any{"event_type": "captcha", "target_host": "shop.example", "worker": worker}}}
	}
	use(t, c, "report", report("w1"))
	refusal(t, c, "report", "INVALID_REQUEST", report("w2"))
	state := use(t, c, "get_session", map[string]any{"session_id": session})
	health := state.fields["health"].(map[string]any)
	first := state.fields["last_failures"].([]any)[0].(map[string]any)
	if health["workers"].(map[string]any)["total"] != 1.0 || first["worker"] != "w1" || first["type"] != "captcha" {
		t.Errorf("the session is %s", state.text)
	}
}

// useStatic buys and renews a static session, and ends it.
func useStatic(t *testing.T, c *mcp.ClientSession) {
	found := use(t, c, "find_products", map[string]any{"type": "static", "country": "US"})
	product := found.fields["products"].([]any)[0].(map[string]any)
	days := product["durations"].([]any)[0].(map[string]any)["duration_days"]
	bought := use(t, c, "create_session", map[string]any{"product_no": product["product_no"], "quantity": 2, "duration_days": days,
		"country": "US", "max_cost": 100, "purchase_id": t.Name() + " static"})
	one := map[string]any{"session_id": bought.str("session_id")}
	if a := use(t, c, "connect", one); len(a.fields["ips"].([]any)) != 2 {
		t.Errorf("connected %s", a.text)
	}
	renewal := map[string]any{"session_id": one["session_id"], "duration_days": days, "max_cost": 0.000001, "purchase_id": t.Name() + " renewal"}
	refusal(t, c, "renew_session", "PRICE_MISMATCH", renewal)
	renewal["max_cost"] = 100
	if a := use(t, c, "renew_session", renewal); a.str("expires_at") == "" {
		t.Errorf("renewed %s", a.text)
	}
	use(t, c, "end_session", one)
}
