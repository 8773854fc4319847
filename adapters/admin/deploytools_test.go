package admin_test

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"agentproxy/domain"
)

// accepts runs a tool on files of a directory of its own, and fails unless it accepts them. A tool that is
// missing skips the test. Debian has promtool in prometheus, amtool in
// prometheus-alertmanager, haproxy, and systemd-analyze in systemd.
func accepts(t *testing.T, files map[string]string, tool string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		t.Skip("there is no ", tool)
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", tool, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestPromtoolAcceptsTheAlerts(t *testing.T) {
	t.Parallel()
	accepts(t, map[string]string{"alerts.yml": text(t, "deploy/prometheus/alerts.yml")}, "promtool", "check", "rules", "alerts.yml")
}

// Each alert has its tests in a file of their own here, beside one of its rule: the tests of all in one file evaluate
// every rule for each, in ten times the time. TestEachAlertIsTestedByPromtool requires a test of each alert.
func TestPromtoolPassesTheTestsOfTheAlerts(t *testing.T) {
	t.Parallel()
	var rules struct {
		Groups []struct{ Rules []map[string]any }
	}
	var tests struct {
		Every string `yaml:"evaluation_interval"`
		Tests []map[string]any
	}
	for name, into := range map[string]any{"alerts.yml": &rules, "alerts_test.yml": &tests} {
		if err := yaml.Unmarshal([]byte(text(t, "deploy/prometheus/"+name)), into); err != nil {
			t.Fatal(err)
		}
	}
	of := map[string][]map[string]any{} // by alert
	for _, c := range tests.Tests {
		alert, _, _ := strings.Cut(c["name"].(string), " ")
		of[alert] = append(of[alert], c)
	}
	files, run := map[string]string{}, []string{"test", "rules"}
	put := func(name string, content any) {
		b, err := yaml.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			alert := r["alert"].(string)
			put(alert+".yml", map[string]any{"groups": []any{map[string]any{"name": alert, "rules": []any{r}}}})
			put(alert+"_test.yml", map[string]any{"rule_files": []string{alert + ".yml"}, "evaluation_interval": tests.Every,
				"tests": of[alert]})
			run = append(run, alert+"_test.yml")
			delete(of, alert)
		}
	}
	if len(of) > 0 || len(run) < 50 {
		t.Errorf("%d alerts have tests, and there are tests of none: %v", len(run)-2, of)
	}
	accepts(t, files, "promtool", run...)
}

// The queries of the dashboard are checked as rules.
func TestPromtoolAcceptsTheDashboard(t *testing.T) {
	t.Parallel()
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(text(t, "deploy/grafana/agentproxy.json")), &board); err != nil {
		t.Fatal(err)
	}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for i, p := range board.Panels {
		for j, target := range p.Targets {
			query := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			fmt.Fprintf(&rules, "  - {record: 'panel:%d:%d', expr: %q}\n", i, j, query)
		}
	}
	accepts(t, map[string]string{"dashboard.yml": rules.String()}, "promtool", "check", "rules", "dashboard.yml")
}

// Where the check runs the names of the replicas do not resolve.
func TestHAProxyAcceptsItsConfiguration(t *testing.T) {
	t.Parallel()
	accepts(t, map[string]string{"haproxy.cfg": text(t, "deploy/haproxy/haproxy.cfg")}, "haproxy", "-c", "-f", "haproxy.cfg")
}

// balanced runs HAProxy, without checks, before a replica that closes every connection when it has read a request, and one
// that answers. It returns the address of its API.
func balanced(t *testing.T) string {
	t.Helper()
	broken := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(broken.Close)
	whole := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(whole.Close)
	return balancing(t, broken.Listener.Addr().String(), whole.Listener.Addr().String())
}

// balancing runs HAProxy, without checks, before two replicas.
func balancing(t *testing.T, first, second string) string {
	t.Helper()
	path, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("there is no haproxy")
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer front.Close()
	socket, err := front.(*net.TCPListener).File() // connections wait in it until HAProxy runs
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	config := strings.NewReplacer("agentproxy-1 agentproxy-1:8080", "agentproxy-1 "+first,
		"agentproxy-2 agentproxy-2:8080", "agentproxy-2 "+second, "bind :8080", "bind fd@3",
		"bind :8081", "bind unix@gateway.sock", " check resolvers", " resolvers", "maxconn 20000", "maxconn 100",
	).Replace(text(t, "deploy/haproxy/haproxy.cfg"))
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), path, "-db", "-f", file)
	run.ExtraFiles = []*os.File{socket}
	var printed strings.Builder
	run.Dir, run.Stderr = filepath.Dir(file), &printed
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.Wait(); t.Failed() {
			t.Logf("haproxy: %v\n%s", err, printed.String())
		}
	})
	return front.Addr().String()
}

// While no replica answers, callers get what the service answers while its database is away.
func TestTheBalancerAnswersAsTheService(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	api := balancing(t, gone.Listener.Addr().String(), gone.Listener.Addr().String())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+api+"/v1/sessions", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var body struct {
		Success bool
		Error   struct {
			Code, Message string
			Retryable     bool
		}
	}
	err = json.NewDecoder(answer.Body).Decode(&body)
	want := domain.ErrUnavailable
	if err != nil || answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" || body.Success || !body.Error.Retryable ||
		body.Error.Code != want.Code || body.Error.Message != want.Message {
		t.Errorf("%v, %s, %v: %+v", err, answer.Status, answer.Header, body)
	}
}

// A replica that ends before it answered costs only those their call who could be charged twice by another.
func TestTheBalancerRepeatsWhatIsSafe(t *testing.T) {
	t.Parallel()
	api := balanced(t)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Minute}
	for _, c := range []struct {
		method, path, key string
		repeated          bool
	}{
		{"GET", "/v1/sessions", "", true},
		{"HEAD", "/v1/sessions", "", true},
		{"POST", "/v1/sessions", "k", true},
		{"POST", "/v1/sessions/sess_1/workers/w/rotate", "k", true},
		{"POST", "/v1/sessions", "", false},
		{"POST", "/v1/account/register", "k", false},
		{"DELETE", "/v1/sessions/sess_1", "k", false},
	} {
		failed := 0
		for range 12 {
			r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+api+c.path, strings.NewReader(`{"a":1}`))
			if err != nil {
				t.Fatal(err)
			}
			if c.key != "" {
				r.Header.Set("Idempotency-Key", c.key)
			}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != 200 {
				failed++
			}
		}
		if (failed == 0) != c.repeated {
			t.Errorf("%+v: %d of 12 calls failed", c, failed)
		}
	}
}

func TestAmtoolAcceptsTheAlertmanager(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"", `{url: "https://hooks.example.com/xyz"}`} {
		config := strings.Replace(compose(t).Configs["alertmanager"].Content, "${ALERTS_TO:-}", to, 1)
		accepts(t, map[string]string{"alertmanager.yml": config}, "amtool", "check-config", "alertmanager.yml")
	}
}

func TestPromtoolAcceptsTheScrapes(t *testing.T) {
	t.Parallel()
	accepts(t, map[string]string{"prometheus.yml": compose(t).Configs["prometheus"].Content,
		"alerts.yml": text(t, "deploy/prometheus/alerts.yml")}, "promtool", "check", "config", "prometheus.yml")
}

// The program of the unit need not be installed here.
func TestSystemdAcceptsTheUnit(t *testing.T) {
	t.Parallel()
	unit := strings.Replace(text(t, "deploy/systemd/agentproxy.service"), "ExecStart=agentproxy serve", "ExecStart=true", 1)
	out := accepts(t, map[string]string{"agentproxy.service": unit}, "systemd-analyze", "verify", "--man=no", "./agentproxy.service")
	if strings.Contains(out, "agentproxy.service:") { // what it does not know it ignores, with a line
		t.Errorf("of the unit it prints:\n%s", out)
	}
}

// manifests returns the files below a folder by their path.
func manifests(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root+folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, root+folder+"/")] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestKustomizeBuildsTheManifests(t *testing.T) {
	t.Parallel()
	files := manifests(t, "deploy/kubernetes")
	plain := accepts(t, files, "kubectl", "kustomize", ".")
	for _, kind := range []string{"Deployment", "Service", "ConfigMap", "Namespace", "PodDisruptionBudget", "NetworkPolicy"} {
		if !strings.Contains(plain, "\nkind: "+kind+"\n") {
			t.Errorf("there is no %s", kind)
		}
	}
	watched := accepts(t, files, "kubectl", "kustomize", "monitoring")
	for _, kind := range []string{"ServiceMonitor", "PrometheusRule"} {
		if !strings.Contains(watched, "\nkind: "+kind+"\n") || strings.Contains(plain, kind) {
			t.Errorf("%s is not in monitoring alone", kind)
		}
	}
	files["kustomization.yaml"] += "components: [sellers]\n"
	sold := accepts(t, files, "kubectl", "kustomize", ".")
	for _, part := range []string{"value: /etc/agentproxy/agentproxy.yaml", "mountPath: /etc/agentproxy\n", "secretName: agentproxy-sellers",
		"fsGroup: 10001", "mountPath: /tmp\n"} {
		if !strings.Contains(sold, part) {
			t.Errorf("with the sellers there is no %q", part)
		}
	}
}
