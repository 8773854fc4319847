package admin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// accepts runs a tool on files of a directory of its own, and fails unless it accepts them. A tool that is
// missing skips the test. Debian has promtool in prometheus, haproxy and systemd-analyze in systemd.
func accepts(t *testing.T, files map[string]string, tool string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		t.Skip("there is no ", tool)
	}
	dir := t.TempDir()
	for name, text := range files {
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

// TestEachAlertIsTestedByPromtool requires a test of each alert.
func TestPromtoolPassesTheTestsOfTheAlerts(t *testing.T) {
	t.Parallel()
	accepts(t, map[string]string{"alerts.yml": text(t, "deploy/prometheus/alerts.yml"),
		"alerts_test.yml": text(t, "deploy/prometheus/alerts_test.yml")}, "promtool", "test", "rules", "alerts_test.yml")
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

// The replicas have no names outside of compose, and the check looks names up.
func TestHAProxyAcceptsItsConfiguration(t *testing.T) {
	t.Parallel()
	config := strings.NewReplacer(" agentproxy-1:", " 127.0.0.1:", " agentproxy-2:", " 127.0.0.1:").Replace(text(t, "deploy/haproxy/haproxy.cfg"))
	accepts(t, map[string]string{"haproxy.cfg": config}, "haproxy", "-c", "-f", "haproxy.cfg")
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

func TestKustomizeBuildsTheManifests(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for _, name := range []string{"agentproxy.env", "deployment.yaml", "kustomization.yaml", "namespace.yaml", "policies.yaml", "services.yaml"} {
		files[name] = text(t, "deploy/kubernetes/"+name)
	}
	out := accepts(t, files, "kubectl", "kustomize", ".")
	for _, kind := range []string{"Deployment", "Service", "ConfigMap", "Namespace", "PodDisruptionBudget", "NetworkPolicy"} {
		if !strings.Contains(out, "\nkind: "+kind+"\n") {
			t.Errorf("there is no %s", kind)
		}
	}
}
