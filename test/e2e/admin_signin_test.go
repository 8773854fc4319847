package e2e_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

func withBearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func asUser(name, password string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(name, password) }
}

// TestWhoReachesTheAdminListenerNeedsItsToken starts a service without a password on each database.
func TestWhoReachesTheAdminListenerNeedsItsToken(t *testing.T) {
	onEachStore(t, func(t *testing.T, env ...string) {
		s := serve(t, append(env, "AGENTPROXY_ADMIN_PASSWORD=")...)
		out, err := s.command("admin", "token").Output()
		ok(t, err)
		token := strings.TrimSpace(string(out))
		if len(token) != 43 {
			t.Fatalf("the token is %q", token)
		}
		for path, want := range map[string]int{"/": 401, "/agents": 401, "/agents.csv": 401, "/do/adjust": 401, "/debug/pprof/heap": 401, "/metrics": 200,
			"/healthz": 200, "/readyz": 200, "/sign-in": 200} {
			if status, _ := s.pageAs(path, func(*http.Request) {}); status != want {
				t.Errorf("%s without a credential: %d, want %d", path, status, want)
			}
			if status, _ := s.pageAs(path, withBearer(token[1:]+"x")); want == 401 && status != 401 {
				t.Errorf("%s with a wrong token: %d", path, status)
			}
			if status, _ := s.pageAs(path, withBearer(token)); status != 200 {
				t.Errorf("%s with the token: %d", path, status)
			}
		}
		// The link of development mode signs in once.
		s.logs("gateway    ")
		link := regexp.MustCompile(`operator   http://(\S+) `).FindStringSubmatch(s.log.String())
		if link == nil || !strings.HasPrefix(link[1], s.admin+"/sign-in/") {
			t.Fatalf("it prints no link:\n%s", s.log)
		}
		once := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		for _, want := range []int{http.StatusSeeOther, http.StatusGone} {
			resp, err := once.Post("http://"+link[1], "application/x-www-form-urlencoded", nil)
			ok(t, err)
			resp.Body.Close()
			cookies := resp.Cookies()
			if resp.StatusCode != want || (len(cookies) == 1) != (want == http.StatusSeeOther) {
				t.Fatalf("the link answers %d, want %d: %v", resp.StatusCode, want, resp.Header)
			}
			if len(cookies) == 1 {
				if status, _ := s.pageAs("/agents", func(r *http.Request) { r.AddCookie(cookies[0]) }); status != 200 {
					t.Errorf("with the link's sign-in: %d", status)
				}
			}
		}
		if strings.Contains(s.log.String(), token) {
			t.Error("the token is logged")
		}
		files, err := filepath.Glob(filepath.Join(s.dir, "*.admin"))
		ok(t, err)
		if len(files) == 1 {
			info, err := os.Stat(files[0])
			ok(t, err)
			if info.Mode() != 0o600 {
				t.Errorf("the file has mode %v", info.Mode())
			}
		}
		s.stop()
		s.start()
		if status, _ := s.pageAs("/", withBearer(token)); status != 200 {
			t.Errorf("after a restart the token is another one: %d", status)
		}
	})
}

// TestUsersOfTheAdminListener signs in two users of a file, which changes while the service runs.
func TestUsersOfTheAdminListener(t *testing.T) {
	t.Parallel()
	const password = "correct horse battery"
	file := filepath.Join(t.TempDir(), "users")
	ok(t, os.WriteFile(file, nil, 0o600))
	s := serve(t, "AGENTPROXY_ADMIN_USERS="+file)
	line := func(name, role string) string {
		t.Helper()
		cmd := s.command("admin", "hash", name, "--role", role)
		cmd.Stdin = bytes.NewBufferString(password + "\n")
		out, err := cmd.Output()
		ok(t, err)
		return string(out)
	}
	reload := func(lines ...string) {
		t.Helper()
		answers := func() int {
			return strings.Count(s.log.String(), "the users of the admin listener") +
				strings.Count(s.log.String(), "configuration not reloaded")
		}
		before := answers()
		ok(t, os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600))
		ok(t, s.cmd.Process.Signal(syscall.SIGHUP))
		within(t, soon, "the file was read again", func() bool { return answers() > before })
	}
	status := func(path, name string) int {
		t.Helper()
		got, _ := s.pageAs(path, asUser(name, password))
		return got
	}
	if got := status("/", "ann"); got != 401 {
		t.Errorf("before ann is a user: %d", got)
	}
	reload(line("ann", "act"), line("rob", "read"))
	for name, form := range map[string]int{"ann": 200, "rob": 403} {
		if page, do := status("/", name), status("/do/adjust?subject=x", name); page != 200 || do != form {
			t.Errorf("%s: %d, and a form %d", name, page, do)
		}
	}
	_, agent := s.register("corrected")
	values := s.form("adjust", "subject="+agent)
	values.Set("by", "alice (CFO)")
	s.pressedBy = asUser("rob", password)
	if r := s.press("adjust", values, "amount=5&sure=yes&reason=gift"); r.status != 403 {
		t.Errorf("a reader's correction: %d", r.status)
	}
	s.pressedBy = asUser("ann", password)
	if r := s.press("adjust", values, "amount=5&sure=yes&reason=gift"); r.status != 200 || r.at != "/agents/"+agent {
		t.Errorf("a correction: %d at %s", r.status, r.at)
	}
	if rows := s.rows("audit", "list", "--action", "adjust"); len(rows) != 1 || rows[0]["by"] != "ann" {
		t.Errorf("kept is %v", rows)
	}
	reload("ann:act:no hash\n")
	if got := status("/", "ann"); got != 200 {
		t.Errorf("after a file with a fault ann gets %d", got)
	}
	reload(line("ann", "read"))
	if page, form, gone := status("/", "ann"), status("/do/adjust?subject=x", "ann"), status("/", "rob"); page != 200 || form != 403 || gone != 401 {
		t.Errorf("a reader who acted before: %d, and a form %d; a user who is gone: %d", page, form, gone)
	}
}
