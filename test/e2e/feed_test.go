package e2e_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/freeport"
)

type feedEvent struct {
	Source, Type, Code string
	TargetHost         string `json:"target_host"`
	StatusCode         *int   `json:"status_code"`
	HowToFix           string `json:"how_to_fix"`
	ExitIP             string `json:"exit_ip"`
	Bytes              int64
}

// events reads the newest of a session's event log.
func (s *service) events(key, id string) []feedEvent {
	s.t.Helper()
	var list struct{ Items []feedEvent }
	s.must(200, "GET", "/sessions/"+id+"/events", key, "").into(s.t, &list)
	return list.Items
}

func TestWhyAConnectFailedIsReadableWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	s := shared(t)
	key, _ := s.register("feed")
	var d apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"session_type":"dynamic","product_no":"dyn_fast_1"}`).into(t, &d)
	proxy, err := url.Parse(d.Proxy.HTTPURL)
	if err != nil {
		t.Fatal(err)
	}
	closed := freeport.Address(t)
	for target, want := range map[string]struct {
		status int
		code   string
	}{
		closed:          {502, "TARGET_UNREACHABLE"},
		"10.1.2.3:443":  {403, "TARGET_REFUSED"},
		"127.0.0.1:25":  {403, "TARGET_DENIED"},
		s.gateway:       {403, "TARGET_REFUSED"},
		"2130706433:80": {403, "TARGET_REFUSED"},
	} {
		if _, _, status, err := connect(proxy, target); err != nil || status != want.status {
			t.Errorf("CONNECT %s: %d, %v; want %d", target, status, err, want.status)
		}
		s.promised(2*time.Second, "the event of "+target, func() bool {
			for _, e := range s.events(key, d.SessionID) {
				if e.Source == "gateway" && e.Code == want.code && strings.HasPrefix(target, e.TargetHost) && e.HowToFix != "" {
					return true
				}
			}
			return false
		})
	}
	// What failed on the way counts for the exit, what was refused does not.
	within(t, soon, "the evidence", func() bool {
		var h struct {
			Stats struct {
				Observed struct {
					TotalEvents int `json:"total_events"`
				}
			}
		}
		s.must(200, "GET", "/sessions/"+d.SessionID+"/health", key, "").into(t, &h)
		return h.Stats.Observed.TotalEvents == 1
	})
}

func TestATimedSessionRotatesWithTheNextConnection(t *testing.T) {
	t.Parallel()
	s := serve(t)
	key, _ := s.register("timed")
	var d apiclient.Session
	s.must(201, "POST", "/sessions", key,
		`{"session_type":"dynamic","product_no":"dyn_fast_1","rotation_mode":"timed","rotation_interval_seconds":10}`).into(t, &d)
	first := s.exitOf(d.Proxy.FullURL)
	if again := s.exitOf(d.Proxy.FullURL); again != first {
		t.Errorf("the exit changed from %s to %s before its time", first, again)
	}
	s.stop() // the gateway has the time of the next rotation in memory
	s.sqlRun(`UPDATE sessions SET rotation_next_at = 1`)
	s.start()
	if later := s.exitOf(d.Proxy.FullURL); later == first {
		t.Errorf("the exit is still %s after the interval", later)
	}
	s.promised(2*time.Second, "the event of the rotation", func() bool {
		for _, e := range s.events(key, d.SessionID) {
			if e.Type == "rotated" && e.Source == "service" {
				return true
			}
		}
		return false
	})
}

func TestACheckShowsTheExit(t *testing.T) {
	t.Parallel()
	s := shared(t)
	key, _ := s.register("check")
	var d apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"session_type":"dynamic","product_no":"dyn_fast_1"}`).into(t, &d)
	var c struct {
		OK     bool
		ExitIP string `json:"exit_ip"`
	}
	s.must(200, "POST", "/sessions/"+d.SessionID+"/check", key, "").into(t, &c)
	if want := s.exitOf(d.Proxy.FullURL); !c.OK || c.ExitIP != want {
		t.Errorf("the check has %+v, the exit is %s", c, want)
	}
}

func TestNoSecretIsLoggedOrStored(t *testing.T) {
	t.Parallel()
	s := serve(t, "AGENTPROXY_LOG_LEVEL=debug")
	var a struct {
		APIKey        string `json:"api_key"`
		APISecret     string `json:"api_secret"`
		WebhookSecret string `json:"webhook_secret"`
	}
	s.must(201, "POST", "/account/register", "", `{"name":"secrets","webhook_url":"https://hooks.example/x"}`).into(t, &a)
	var token struct {
		AccessToken string `json:"access_token"`
	}
	s.must(200, "POST", "/auth/token", "", fmt.Sprintf(`{"api_key":%q,"api_secret":%q}`, a.APIKey, a.APISecret)).into(t, &token)
	var d apiclient.Session
	s.must(201, "POST", "/sessions", a.APIKey, `{"session_type":"dynamic","product_no":"dyn_fast_1"}`,
		"Idempotency-Key", "one").into(t, &d)
	s.exitOf(d.Proxy.FullURL)
	proxy, _ := url.Parse(d.Proxy.FullURL)
	password, _ := proxy.User.Password()
	_, _, _, _ = connect(proxy, "10.0.0.1:443")
	s.must(401, "GET", "/account/info", a.APIKey+"x", "")
	s.must(400, "POST", "/auth/token", "", fmt.Sprintf(`{"api_key":%q,"api_secret":1}`, a.APIKey))
	within(t, soon, "the event of the refused connection is stored", func() bool { return len(s.events(a.APIKey, d.SessionID)) > 0 })
	s.stop()
	stored, err := os.ReadFile(filepath.Join(s.dir, "agentproxy.db"))
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]string{"API key": a.APIKey, "API secret": a.APISecret,
		"webhook secret": a.WebhookSecret, "token": token.AccessToken, "proxy password": password} {
		if secret == "" {
			t.Fatalf("no %s was given", name)
		}
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the %s is in the log", name)
		}
		if strings.Contains(string(stored), secret) {
			t.Errorf("the %s is in the database", name)
		}
	}
}
