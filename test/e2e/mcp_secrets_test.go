package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/campaign"
	"agentproxy/test/syncbuffer"
)

// answers keeps the bodies of all answers that pass it.
type answers struct {
	withKey
	mu   sync.Mutex
	seen bytes.Buffer
}

func (w *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.withKey.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.Write(body)
	return resp, err
}

// known are the secrets of an agent with a dynamic and a static session.
func (s *service) known(key string) (sessions, secrets []string) {
	s.t.Helper()
	for _, body := range []string{
		`{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":0.1}}`,
		`{"type":"static","config":{"product_no":"sta_isp_1","quantity":3,"duration_days":30,"country":"US"}}`,
	} {
		var d apiclient.Session
		s.must(201, "POST", "/sessions", key, body).into(s.t, &d)
		sessions = append(sessions, d.SessionID)
		proxy, err := url.Parse(d.Proxy.FullURL)
		if err != nil {
			s.t.Fatal(err)
		}
		password, _ := proxy.User.Password()
		secrets = append(secrets, password, d.Proxy.FullURL)
	}
	return sessions, append(secrets, key)
}

// TestNoToolShowsASecret calls every tool with sessions that have secrets, and with the secrets as each of
// their arguments, and searches all that comes back and all that is logged.
func TestNoToolShowsASecret(t *testing.T) {
	t.Parallel()
	s := serve(t, "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0", "AGENTPROXY_TRIAL_BALANCE=500", "AGENTPROXY_LOG_LEVEL=debug")
	key, _ := s.register("secrets")
	sessions, secrets := s.known(key)
	other := s.must(201, "POST", "/account/register", "", `{"name":"pasted"}`)
	var pasted struct {
		Key    string `json:"api_key"`
		Secret string `json:"api_secret"`
	}
	other.into(t, &pasted)
	secrets = append(secrets, pasted.Key, pasted.Secret)
	find := func(t *testing.T, where, text string) {
		t.Helper()
		for i, secret := range secrets {
			if strings.Contains(text, secret) || strings.Contains(text, url.QueryEscape(secret)) {
				t.Errorf("%s has the secret %d of %d", where, i, len(secrets))
			}
		}
	}
	// An era changes the framing of a call and not its answer.
	n := campaign.Rounds(1, 2)
	for _, era := range []string{handshakeEra, requestEra}[:n] {
		t.Run("http "+era, func(t *testing.T) {
			s := *s
			s.t = t
			w := &answers{withKey: withKey{"Authorization", "Bearer " + key}}
			c := s.toolsByHTTP(era, w)
			callWithSecrets(t, c, sessions, secrets)
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.seen.Len() < 10000 {
				t.Errorf("%d bytes of answers were seen", w.seen.Len())
			}
			find(t, "an answer", w.seen.String())
		})
	}
	for _, era := range []string{requestEra, handshakeEra}[:n] {
		t.Run("stdio "+era, func(t *testing.T) {
			s := *s
			s.t = t
			home := t.TempDir()
			var out, errs syncbuffer.Buffer
			cmd := s.client(home, key, "mcp")
			cmd.Stderr = &errs
			c := toolsOver(t, era, &mcp.LoggingTransport{Transport: &mcp.CommandTransport{Command: cmd}, Writer: &out})
			callWithSecrets(t, c, sessions, secrets)
			var lines strings.Builder
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(line, "read: ") {
					lines.WriteString(line)
				}
			}
			if lines.Len() < 10000 {
				t.Errorf("%d bytes of answers were seen", lines.Len())
			}
			find(t, "an answer", lines.String())
			find(t, "stderr", errs.String())
			credentialFile(t, c, home, sessions[0], secrets[0])
		})
	}
	find(t, "the log", s.log.String())
	if s.log.String() == "" {
		t.Error("nothing was logged")
	}
}

// callWithSecrets calls every tool: as it should be, and with a secret as each argument. Errors are
// searched like answers.
func callWithSecrets(t *testing.T, c *mcp.ClientSession, sessions, secrets []string) {
	t.Helper()
	call := func(name string, args map[string]any) {
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		text, _ := json.Marshal(r)
		for i, secret := range secrets {
			if strings.Contains(string(text), secret) || err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s %v shows the secret %d: %s %v", name, args, i, text, err)
			}
		}
	}
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range sessions {
		for _, client := range []string{"curl", "playwright", "selenium", "go", "env"} {
			call("connect", map[string]any{"session_id": id, "client": client})
		}
		call("connect", map[string]any{"session_id": id, "reveal": true})
		for _, name := range []string{"get_session", "check_proxy", "rotate"} {
			call(name, map[string]any{"session_id": id})
		}
		for i, secret := range secrets {
			call("report", map[string]any{"session_id": id, "events": []any{map[string]any{"event_type": "block", "status_code": 403,
				"target_host": secret[:min(len(secret), 250)], "error_message": "curl -x " + secret + " failed"}}})
			call("report", map[string]any{"session_id": id, "events": []any{map[string]any{"event_type": secret}}})
			call("rotate", map[string]any{"session_id": id, "request_id": secret})
			call("rotate", map[string]any{"session_id": id, "reason": secret})
			call("renew_session", map[string]any{"session_id": id, "max_cost": 0.01, "purchase_id": secret})
			if i%2 == 0 {
				call("get_session", map[string]any{"session_id": id})
			}
		}
		call("get_session", map[string]any{"session_id": id})
	}
	call("list_sessions", nil)
	call("get_account", nil)
	for _, tool := range list.Tools {
		schema, _ := json.Marshal(tool.InputSchema)
		var s struct{ Properties map[string]any }
		if err := json.Unmarshal(schema, &s); err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			for name := range s.Properties {
				call(tool.Name, map[string]any{name: secret})
				args := map[string]any{"session_id": sessions[0], "product_no": "dyn_fast_1", "max_cost": 0.001, "purchase_id": "x",
					"amount": 1, "events": []any{map[string]any{"event_type": "success"}}}
				for other := range args {
					if s.Properties[other] == nil {
						delete(args, other)
					}
				}
				args[name] = secret
				if tool.Name != "end_session" && tool.Name != "recharge" {
					call(tool.Name, args)
				}
			}
			call(tool.Name, map[string]any{secret: secret})
		}
	}
	for _, secret := range secrets {
		call(secret, nil)
	}
}

// credentialFile holds the file that connect writes over stdio against what it promises.
func credentialFile(t *testing.T, c *mcp.ClientSession, home, session, password string) {
	t.Helper()
	a := use(t, c, "connect", map[string]any{"session_id": session})
	path, _ := a.fields["secret"].(map[string]any)["file"].(string)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 || !strings.HasPrefix(path, home) {
		t.Fatalf("%s: %v, %v", path, info, err)
	}
	if dir, err := os.Stat(filepath.Dir(path)); err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", dir, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "export PROXY_PASSWORD='"+password+"'\n") {
		t.Errorf("the file lacks the password, %v", err)
	}
}

// TestRevealInTheAnswerTakesTheOperatorAndTheAgent asks for credentials with and without the permission.
func TestRevealInTheAnswerTakesTheOperatorAndTheAgent(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		s := shared(t)
		if allowed {
			s = serve(t, "AGENTPROXY_MCP_REVEAL=true")
		}
		key, _ := s.register("reveal")
		sessions, secrets := s.known(key)
		c := s.toolsByHTTP(requestEra, withKey{"X-API-Key", key})
		asked := map[string]any{"session_id": sessions[0], "reveal": true}
		if !allowed {
			refusal(t, c, "connect", "REVEAL_NOT_ALLOWED", asked)
			continue
		}
		if a := use(t, c, "connect", asked); a.str("password") != secrets[0] || !strings.Contains(a.str("snippet"), secrets[1]) {
			t.Error("the answer lacks the password")
		}
		if a := use(t, c, "connect", map[string]any{"session_id": sessions[0]}); strings.Contains(a.text, secrets[0]) {
			t.Error("an answer has the password that was not asked for")
		}
		events := s.must(200, "GET", "/sessions/"+sessions[0]+"/events", key, "")
		if bytes.Count(events.body, []byte(`"type":"revealed"`)) != 1 {
			t.Errorf("events %s", events.body)
		}
	}
}

// TestRevealLinkCarriesAProxiedRequest fetches the link of an answer at another replica, after a restart, and uses it.
func TestRevealLinkCarriesAProxiedRequest(t *testing.T) {
	t.Parallel()
	both := replicas(t)
	key, _ := both[0].register("link")
	sessions, secrets := both[0].known(key)
	c := both[0].toolsByHTTP(requestEra, withKey{"X-API-Key", key})
	a := use(t, c, "connect", map[string]any{"session_id": sessions[0]})
	link, err := url.Parse(a.fields["secret"].(map[string]any)["link"].(string))
	if err != nil || len(strings.TrimPrefix(link.Path, "/v1/reveal/")) < 26 {
		t.Fatalf("the link is %s, %v", link, err)
	}
	both[0].kill()
	link.Host = both[1].api
	get := func() (int, string) {
		resp, err := http.Get(link.String())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, strings.TrimSpace(string(body))
	}
	status, proxy := get()
	// A replica names its own gateway.
	if status != 200 || proxy != strings.Replace(secrets[1], both[0].gateway, both[1].gateway, 1) {
		t.Fatalf("the link answers %d", status)
	}
	if status, _ := get(); status != 410 {
		t.Errorf("a used link answers %d", status)
	}
	both[1].exitOf(proxy)
}
