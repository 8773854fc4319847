package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentproxy/adapters/apiclient"
)

const nextSecret = "the-next-secret-0123456789abcdefghijklmnop"

// refusesToStart fails unless the program refuses to start with a text in its message.
func (s *service) refusesToStart(want string) {
	s.t.Helper()
	out, err := s.run("serve")
	if exit(err) != 1 || !strings.Contains(out, want) {
		s.t.Errorf("the start: exit %d, want 1 and %q:\n%s", exit(err), want, out)
	}
}

// setEnv replaces a variable of the program.
func (s *service) setEnv(name, value string) {
	s.env = slices.DeleteFunc(slices.Clone(s.env), func(v string) bool { return strings.HasPrefix(v, name+"=") })
	if value != "" {
		s.env = append(s.env, name+"="+value)
	}
}

func TestTheRootSecretIsReplaced(t *testing.T) { onEachStore(t, theRootSecretIsReplaced) }

func theRootSecretIsReplaced(t *testing.T, store ...string) {
	_, first, _ := strings.Cut(secret, "=")
	s := serve(t, append(store, secret)...)
	var a struct {
		APIKey    string `json:"api_key"`
		APISecret string `json:"api_secret"`
	}
	s.must(201, "POST", "/account/register", "", `{"name":"before"}`).into(t, &a)
	pair := `{"api_key":"` + a.APIKey + `","api_secret":"` + a.APISecret + `"}`
	var token struct {
		Text string `json:"access_token"`
	}
	s.must(200, "POST", "/auth/token", "", pair).into(t, &token)
	var bought apiclient.Session
	s.must(201, "POST", "/sessions", a.APIKey, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":1}}`).into(t, &bought)
	exitBefore := s.exitOf(bought.Proxy.HTTPURL)
	s.stop()

	s.setEnv("AGENTPROXY_SECRET", nextSecret)
	s.refusesToStart("AGENTPROXY_SECRET_PREVIOUS")
	if out, err := s.run("agent", "list"); exit(err) != 1 || !strings.Contains(out, "AGENTPROXY_SECRET") {
		t.Errorf("a command with another secret: %v\n%s", err, out)
	}

	s.setEnv("AGENTPROXY_SECRET_PREVIOUS", "some-other-secret-0123456789abcdefghijklm,"+first)
	s.start()
	s.must(200, "GET", "/account/info", a.APIKey, "")
	s.must(200, "GET", "/account/info", "", "", "Authorization", "Bearer "+token.Text)
	s.must(200, "POST", "/auth/token", "", pair)
	if got := s.exitOf(bought.Proxy.HTTPURL); got != exitBefore {
		t.Errorf("the exit is %s, was %s", got, exitBefore)
	}
	now := s.session(a.APIKey, bought.SessionID)
	if now.Proxy.HTTPURL == bought.Proxy.HTTPURL {
		t.Error("the password is still shown as the previous secret derives it")
	}
	s.exitOf(now.Proxy.HTTPURL)
	s.object("secret", "rotate")
	key, _ := s.register("after")
	s.stop()

	// A start without it names what depends on it, unless that was dropped.
	s.setEnv("AGENTPROXY_SECRET_PREVIOUS", "")
	s.refusesToStart("1 API keys and 0 deliveries")
	s.setEnv("AGENTPROXY_SECRET_PREVIOUS", first)
	s.object("secret", "drop", "--reason", "it leaked")
	s.setEnv("AGENTPROXY_SECRET_PREVIOUS", "")
	s.start()
	s.must(200, "GET", "/account/info", key, "")
	s.must(401, "GET", "/account/info", a.APIKey, "")
	s.verify()
}

func TestTheSecretBesideADatabaseIsNotMadeAnew(t *testing.T) {
	t.Parallel()
	s := serve(t)
	key, _ := s.register("kept")
	s.stop()
	file := filepath.Join(s.dir, "agentproxy.db.secret")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.refusesToStart(".secret is missing")
	if _, err := os.Stat(file); err == nil {
		t.Error("a refused start made a secret")
	}
	// Moved aside it is replaced by a new one.
	if err := os.WriteFile(file+".previous", text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.must(200, "GET", "/account/info", key, "")
	if fresh, err := os.ReadFile(file); err != nil || bytes.Equal(fresh, text) {
		t.Errorf("the new secret is %d bytes, %v", len(fresh), err)
	}
}

func TestABackupWarnsOfTheSecret(t *testing.T) {
	t.Parallel()
	s := shared(t)
	key, _ := s.register("kept")
	without, with := filepath.Join(s.dir, "without.db"), filepath.Join(s.dir, "with.db")
	if got := s.object("backup", without); !strings.Contains(got["secret"].(string), "not included") {
		t.Errorf("backup returns %v", got)
	}
	if _, err := os.Stat(without + ".secret"); err == nil {
		t.Error("the secret is beside a backup that should not have it")
	}
	if got := s.object("backup", with, "--with-secret"); got["secret"] != with+".secret" {
		t.Errorf("backup returns %v", got)
	}
	if info, err := os.Stat(with + ".secret"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret of the backup is %v, %v", info, err)
	}
	restored := serve(t, "AGENTPROXY_DATABASE_URL=sqlite://"+with)
	restored.must(200, "GET", "/account/info", key, "")
	(&service{t: t, dir: s.dir, api: s.api, gateway: s.gateway, admin: s.admin,
		env: []string{"AGENTPROXY_DATABASE_URL=sqlite://" + without}}).refusesToStart(".secret is missing")
}
