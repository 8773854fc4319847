package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// rpc posts one message to the tools.
func (s *service) rpc(key, body string, headers ...string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "POST", "http://"+s.api+"/mcp", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if key != "" {
		r.Header.Set("X-API-Key", key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// TestFaultsOfTheProtocol sends what a client of tools must not, with a key where it would be repeated.
func TestFaultsOfTheProtocol(t *testing.T) {
	t.Parallel()
	s := shared(t)
	key, _ := s.register("protocol")
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"}}`
	message := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, strings.Join([]string{meta, params}, ","))
	}
	account := message("tools/call", `"name":"get_account","arguments":{}`)
	current := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "get_account"}
	with := func(name, value string) []string { return append(slices.Clone(current), name, value) }
	for _, c := range []struct {
		what, body string
		headers    []string
		status     int
		answer     string
	}{
		{"a call", account, current, 200, `"isError"`},
		{"another name in the header", account, with("Mcp-Name", key), 400, "-32020"},
		{"another method in the header", account, with("Mcp-Method", "tools/list"), 400, "-32020"},
		{"an unknown version", strings.ReplaceAll(account, "2026-07-28", "2099-01-01"), with("MCP-Protocol-Version", "2099-01-01"), 400, "-32022"},
		{"an unknown method", message(key, `"x":1`), with("Mcp-Method", key), 404, "-32601"},
		{"an unknown tool", message("tools/call", `"name":"`+key+`","arguments":{}`), with("Mcp-Name", key), 200, "-32602"},
		{"no JSON", `{"` + key, current, 400, ""},
		{"another site", account, with("Origin", "https://evil.example"), 403, "CROSS_SITE_REQUEST"},
		{"a large body", strings.Repeat(" ", 1<<20) + account, current, 413, "PAYLOAD_TOO_LARGE"},
	} {
		status, answer := s.rpc(key, c.body, c.headers...)
		found := strings.Contains(answer, c.answer) || c.answer == `"isError"` && strings.Contains(answer, `next_step`)
		if status != c.status && c.what != "an unknown tool" || !found || strings.Contains(answer, key) {
			t.Errorf("%s: %d %s, want %d with %s", c.what, status, answer, c.status, c.answer)
		}
	}
	if status, answer := s.rpc("", account, current...); status != 401 || !strings.Contains(answer, "AUTH_INVALID_KEY") {
		t.Errorf("without a credential: %d %s", status, answer)
	}
	if log := s.log.String(); strings.Contains(log, key) {
		t.Error("the log has the key")
	}
}

// TestToolsOfAToken lists and calls the tools that a token's permissions allow.
func TestToolsOfAToken(t *testing.T) {
	t.Parallel()
	s := shared(t)
	var a struct {
		Key    string `json:"api_key"`
		Secret string `json:"api_secret"`
	}
	s.must(201, "POST", "/account/register", "", `{"name":"token"}`).into(t, &a)
	for _, c := range []struct{ scope, tools string }{
		{"account:read", "get_account wait_for_events"},
		{"products:read", "find_products quote"},
		{"sessions:read", "connect diagnose get_session list_sessions"},
		{"sessions:write", "check_proxy create_session end_session renew_session rotate"},
		{"telemetry:write", "report"}, {"billing:write", "recharge"}, {"stats:read", ""},
	} {
		var token struct {
			Text string `json:"access_token"`
		}
		s.must(200, "POST", "/auth/token", "", fmt.Sprintf(`{"api_key":%q,"api_secret":%q,"permissions":[%q]}`, a.Key, a.Secret, c.scope)).
			into(t, &token)
		client := s.toolsByHTTP(requestEra, withKey{"Authorization", "Bearer " + token.Text})
		list, err := client.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		if got := strings.Join(names, " "); got != c.tools {
			t.Errorf("%s lists %s, want %s", c.scope, got, c.tools)
		}
		if _, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_account"}); (err == nil) != (c.scope == "account:read") {
			t.Errorf("%s calls get_account: %v", c.scope, err)
		}
		if text, _ := json.Marshal(list); strings.Contains(string(text), `"public"`) {
			t.Errorf("%s: the list may be kept for others", c.scope)
		}
	}
	client := s.toolsByHTTP(requestEra, withKey{"Authorization", "Bearer " + a.Key})
	if got := use(t, client, "get_account", nil); got.num("balance") != 10 {
		t.Errorf("the account is %s", got.text)
	}
}
