package e2e_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
)

// exit returns the exit status of a command, or -1 if it did not run.
func exit(err error) int {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// object runs a command with --json and reads what it prints.
func (s *service) object(args ...string) map[string]any {
	s.t.Helper()
	out, err := s.done(append([]string{"--json"}, args...)...)
	var v map[string]any
	if err != nil || json.Unmarshal([]byte(out), &v) != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return v
}

func TestOperatorsWorkBesideTheService(t *testing.T) { onEachShared(t, operatorsWorkBesideTheService) }

func operatorsWorkBesideTheService(t *testing.T, s *service) {
	s.object("referrer", "add", "--name", "Partner", "--code", "PARTNER2026")
	r := s.must(201, "POST", "/account/register", "", `{"name":"referred","referral_code":" PARTNER2026 "}`)
	var a struct {
		AgentID  string `json:"agent_id"`
		APIKey   string `json:"api_key"`
		Referral struct{ Name, Code string }
	}
	if r.into(t, &a); a.Referral.Name != "Partner" || a.Referral.Code != "PARTNER2026" {
		t.Errorf("the referral is %+v", a.Referral)
	}
	if out, err := s.run("referrer", "add", "--name", "Other", "--code", "PARTNER2026"); exit(err) != 1 {
		t.Errorf("a code twice: %v\n%s", err, out)
	}
	s.object("referrer", "disable", "--code", "PARTNER2026")
	if r := s.must(400, "POST", "/account/register", "", `{"name":"late","referral_code":"PARTNER2026"}`); r.code() != "INVALID_REFERRAL_CODE" {
		t.Errorf("a disabled code is answered %s", r.code())
	}
	if out, err := s.run("referrer", "list"); err != nil || !strings.Contains(out, "openAgent") || !strings.Contains(out, "Partner") {
		t.Errorf("referrer list: %v\n%s", err, out)
	}

	if got := s.object("adjust", a.AgentID, "--amount", "-1.50", "--reason", "goodwill gone wrong"); got["balance_after"] != "8.5" {
		t.Errorf("after a correction of -1.50: %v", got)
	}
	if out, err := s.run("adjust", a.AgentID, "--amount", "-100", "--reason", "too much"); exit(err) != 1 || !strings.Contains(out, "balance") {
		t.Errorf("a correction below zero: %v\n%s", err, out)
	}
	s.object("agent", "set-rate-limit", a.AgentID, "--per-minute", "7")
	s.promised(time.Second, "the agent's own limit", func() bool {
		return s.must(200, "GET", "/billing/balance", a.APIKey, "").header.Get("X-RateLimit-Limit") == "7"
	})
	s.object("agent", "set-rate-limit", a.AgentID, "--per-minute", "0")
	s.object("agent", "disable", a.AgentID, "--reason", "abuse")
	s.promised(time.Second, "the account is shut out", func() bool {
		r, err := s.call(t.Context(), "GET", "/billing/balance", a.APIKey, "")
		return err == nil && r.code() == "ACCOUNT_DISABLED"
	})
	if got := s.object("agent", "show", a.AgentID); got["status"] != "disabled" || got["disabled_for"] != "abuse" {
		t.Errorf("agent show: %v", got)
	}
	s.object("agent", "enable", a.AgentID)
	s.promised(time.Second, "the account is let in again", func() bool {
		r, err := s.call(t.Context(), "GET", "/billing/balance", a.APIKey, "")
		return err == nil && r.status == 200
	})
	if out, err := s.run("agent", "list"); err != nil || !strings.Contains(out, a.AgentID) {
		t.Errorf("agent list: %v\n%s", err, out)
	}
	s.object("migrate")
	if got := s.object("verify"); got["faults"] != 0.0 {
		t.Errorf("verify: %v", got)
	}
}

func TestCommandsExitByKindOfFault(t *testing.T) {
	t.Parallel()
	s := shared(t)
	for _, c := range []struct {
		args []string
		want int
		text string
	}{
		{[]string{"--help"}, 0, "serve"},
		{[]string{"verify", "--help"}, 0, "ledger"},
		{[]string{"version"}, 0, "agentproxy"},
		{[]string{"nonsense"}, 2, "nonsense"},
		{[]string{"adjust"}, 2, ""},
		{[]string{"agent", "show", "agt_unknown"}, 1, "no such agent"},
		{[]string{"agent", "disable", "agt_unknown", "--reason", "x"}, 1, "no such agent"},
		{[]string{"referrer", "disable", "--code", "NONE"}, 1, "unknown"},
		{[]string{"adjust", "agt_unknown", "--amount", "ten", "--reason", "x"}, 1, "amount"},
	} {
		out, err := s.run(c.args...)
		if exit(err) != c.want || !strings.Contains(out, c.text) {
			t.Errorf("%v: exit %d, want %d with %q:\n%s", c.args, exit(err), c.want, c.text, out)
		}
		if strings.Contains(out, "goroutine") {
			t.Errorf("%v printed a stack:\n%s", c.args, out)
		}
	}
}

func TestVerifyExitsNonZeroWithTheRows(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, id := s.register("tampered")
	s.stop()
	db, err := sql.Open("sqlite3", filepath.Join(s.dir, "agentproxy.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("UPDATE wallets SET own = own + 1 WHERE agent_id = ?", id); err != nil {
		t.Fatal(err)
	}
	out, err := s.run("verify")
	if exit(err) != 1 || !strings.Contains(out, id) {
		t.Errorf("exit %d:\n%s", exit(err), out)
	}
}

func TestABackupIsAWholeDatabase(t *testing.T) {
	t.Parallel()
	s := shared(t)
	key, _ := s.register("kept")
	s.must(201, "POST", "/sessions", key, `{"session_type":"static","product_no":"sta_isp_1","quantity":1}`)
	copied := filepath.Join(s.dir, "copy.db")
	s.object("backup", copied)
	if out, err := s.run("backup", copied); exit(err) != 1 {
		t.Errorf("a backup over a file that exists: %v\n%s", err, out)
	}
	secret, err := os.ReadFile(filepath.Join(s.dir, "agentproxy.db.secret"))
	if err != nil {
		t.Fatal(err)
	}
	restored := serve(t, "AGENTPROXY_DATABASE_URL=sqlite://"+copied, "AGENTPROXY_SECRET="+string(secret))
	var list struct{ Pagination struct{ Total int } }
	restored.must(200, "GET", "/sessions", key, "").into(t, &list)
	if list.Pagination.Total != 1 {
		t.Errorf("%d sessions after the restore, want 1", list.Pagination.Total)
	}
	restored.verify()
}

// What config init writes is accepted with its example of a seller, without the comment signs.
func TestTheExampleOfConfigInitIsAccepted(t *testing.T) {
	t.Parallel()
	s := &service{t: t, dir: t.TempDir(), api: "127.0.0.1:1", gateway: "127.0.0.1:1", admin: "127.0.0.1:1"}
	file := filepath.Join(s.dir, "example.yaml")
	if out, err := s.run("config", "init", file); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	written, err := os.ReadFile(file)
	at := strings.Index(string(written), "# providers:\n")
	if err != nil || at < 0 {
		t.Fatalf("%v; the file has no example of a seller:\n%s", err, written)
	}
	example := string(written[:at]) + strings.TrimPrefix(strings.ReplaceAll("\n"+string(written[at:]), "\n# ", "\n"), "\n")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"AGENTPROXY_CONFIG=" + file, "SHOP_API_KEY=" + strings.Repeat("k", 32)}
	out, err := s.run("config", "check")
	if err != nil || strings.Contains(out, "example.yaml:") || !strings.Contains(out, "de_static") ||
		strings.Contains(out, "USDT Agents") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestAWrongConfigurationIsOneClearLine(t *testing.T) {
	t.Parallel()
	s := &service{t: t, dir: t.TempDir(), api: "127.0.0.1:1", gateway: "127.0.0.1:1", admin: "127.0.0.1:1"}
	for name, c := range map[string]struct{ env, want string }{
		"a database of another kind": {"AGENTPROXY_DATABASE_URL=mysql://root:hunter2@db/x", "AGENTPROXY_DATABASE_URL"},
		"a file that is a folder":    {"AGENTPROXY_DATABASE_URL=sqlite:///", ""},
		"no number":                  {"AGENTPROXY_SESSION_LIMIT=many", "AGENTPROXY_SESSION_LIMIT: must be a whole number"},
		"exits that are not ours":    {"AGENTPROXY_EXITS=192.0.2.1", "AGENTPROXY_EXITS"},
	} {
		s.env = []string{c.env, "AGENTPROXY_LOG_LEVEL=error"}
		out, err := s.run("serve")
		if exit(err) != 1 || !strings.Contains(out, c.want) || strings.Contains(out, "hunter2") || strings.Contains(out, "goroutine") {
			t.Errorf("%s: exit %d:\n%s", name, exit(err), out)
		}
		if lines := strings.Count(strings.TrimSpace(out), "\n") + 1; lines > 3 {
			t.Errorf("%s: %d lines:\n%s", name, lines, out)
		}
	}
}
