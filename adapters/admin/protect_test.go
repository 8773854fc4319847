package admin_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/admin"
	"agentproxy/adapters/admin/signin"
	"agentproxy/test/fake"
)

// token is the credential of the servers of these tests.
const token = "0123456789abcdefghijklmnopqrstuvwxyz0123456"

func gate() *signin.Gate {
	return signin.New(signin.Config{Secret: token, Token: true}, fake.NewClock(), discard)
}

// raw sends the lines of a request and returns the status and the body of the answer.
func raw(t *testing.T, s *admin.Server, lines ...string) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	_, _ = io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: strings.Fields(lines[0])[0]})
	if err != nil {
		t.Fatalf("%q: %v", lines, err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(body)
}

// secretPage is what no stranger may read.
const secretPage = "what the console shows"

// A user of the same host, who reaches the listener and has no credential, gets nothing that the console, the profiles
// or the metrics of another network have, by no method and no spelling of a path.
func TestWithoutACredentialNothingIsServed(t *testing.T) {
	t.Parallel()
	served := 0
	s, _ := begin(t, admin.Config{Pprof: true, Console: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served++
		_, _ = io.WriteString(w, secretPage)
	})}, discard)
	paths := []string{"/", "/agents", "/agents.csv", "/sessions/x", "/money", "/audit", "/do/adjust", "/do/agent-rotate-key?subject=agt_1",
		"/do/backup", "//agents", "/./agents", "/assets/../agents", "/assets/..%2fagents", "/assets%2fconsole.css", "/healthz/", "/healthz/../agents",
		"/healthz%2f..%2fagents", "/healthz;/agents", "/sign-in/../agents", "/sign-in/x/../../do/adjust", "/sign-in/%2e%2e/agents", "/sign-in/",
		"/sign-in/a/b", "/%61gents", "/AGENTS", "/metrics/", "/metrics/../agents", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline",
		"/debug/pprof/goroutine?debug=1", "/debug/pprof/profile?seconds=1", "/debug//pprof/heap", "/debug/pprof/../pprof/heap", "/nothing"}
	methods := []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get", "X"}
	for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} {
		for _, credential := range []string{"X: y", "Authorization: Basic", "Authorization: Basic Og==", "Authorization: Bearer",
			"Authorization: Bearer " + token[1:], "Authorization: Digest x", "Cookie: operator=; __Host-operator=", "Cookie: operator=" + token,
			"X-Forwarded-For: 127.0.0.1", "X-Forwarded-User: operator", "Accept: text/html"} {
			for _, path := range paths {
				for _, method := range methods {
					if method != "GET" && credential != "X: y" && path != "/do/adjust" {
						continue // each method without a credential, and each credential with GET, are enough
					}
					status, body := raw(t, s, method+" "+path+" "+version, "Host: localhost", credential, "Content-Length: 0", "Connection: close")
					link := strings.HasPrefix(path, "/sign-in/") && (status == 200 || status == 410) // it is wrong, and has a page
					asset := strings.HasPrefix(path, "/assets/") && status == 404
					refused := status == 401 || status == 429 || status >= 301 && status <= 308 || link || asset
					if !refused || strings.Contains(body, "goroutine profile") {
						t.Errorf("%s %s %s with %s: %d %.100q", method, path, version, credential, status, body)
					}
				}
			}
		}
	}
	if served > 0 {
		t.Errorf("the console answered %d requests", served)
	}
	if status, body := raw(t, s, "GET /agents HTTP/1.1", "Host: localhost", "Connection: close", "Authorization: Bearer "+token); status != 200 || body != secretPage {
		t.Errorf("with the token: %d %q", status, body)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/sign-in", "/assets/console.css"} {
		if status, _ := raw(t, s, "GET "+path+" HTTP/1.1", "Host: localhost", "Connection: close"); status != 200 {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// outside returns an address of this host that is not on loopback.
func outside(t *testing.T) string {
	t.Helper()
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	t.Skip("this host has no address but loopback")
	return ""
}

func TestOffLoopbackMetricsNeedACredentialOrTheOption(t *testing.T) {
	t.Parallel()
	at := outside(t)
	for _, open := range []bool{false, true} {
		s, _ := create(t, admin.Config{Addr: "0.0.0.0:0", OpenMetrics: open}, discard)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		port := s.Addr().(*net.TCPAddr).Port
		for host, want := range map[string]map[string]int{
			at:          {"/metrics": map[bool]int{false: 401, true: 200}[open], "/healthz": 200, "/readyz": 200, "/": 401},
			"127.0.0.1": {"/metrics": 200, "/": 401},
		} {
			for path, status := range want {
				res, err := http.Get(fmt.Sprintf("http://%s:%d%s", host, port, path))
				if err != nil {
					t.Fatal(err)
				}
				_ = res.Body.Close()
				if res.StatusCode != status {
					t.Errorf("open %v: %s of %s: %d, want %d", open, path, host, res.StatusCode, status)
				}
			}
		}
		http.DefaultClient.CloseIdleConnections()
	}
}

// A user who may read sees no profiles, which have what is in memory.
func TestAReaderSeesNoProfiles(t *testing.T) {
	t.Parallel()
	const password = "a password of the reader"
	line, err := signin.Line("ann", signin.Read, password)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	users, err := signin.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := begin(t, admin.Config{Pprof: true, Gate: signin.New(signin.Config{Secret: token, Token: true, Users: users}, fake.NewClock(), discard),
		Console: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, signin.Of(r.Context())) })}, discard)
	for path, want := range map[string]int{"/debug/pprof/heap": 403, "/debug/pprof/": 403, "/": 200, "/metrics": 200} {
		req, err := http.NewRequest("GET", "http://"+s.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("ann", password)
		req.Close = true
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != want || path == "/" && string(body) != "{ann read}" {
			t.Errorf("%s: %d %.100s", path, res.StatusCode, body)
		}
	}
}
