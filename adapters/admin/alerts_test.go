package admin_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// alerting is a file of Prometheus' rules.
type alerting struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr, For string
			Labels           struct{ Severity string }
			Annotations      struct{ Summary, Runbook string }
		}
	}
}

var (
	series   = regexp.MustCompile(`agentproxy_[a-z_]+`)
	suffixes = regexp.MustCompile(`_(bucket|count|sum)$`)
)

// sources returns the text of all programs.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"adapters", "cmd"} {
		err := filepath.WalkDir(root+dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// exported reports whether a program exports a series. Some join its name of a prefix and a part.
func exported(code, name string) bool {
	name = suffixes.ReplaceAllString(name, "")
	if strings.Contains(code, `"`+name+`"`) {
		return true
	}
	for _, prefix := range []string{"agentproxy_gateway_", "agentproxy_database_", "agentproxy_connections_"} {
		if part, ok := strings.CutPrefix(name, prefix); ok && strings.Contains(code, `"`+prefix) && strings.Contains(code, `"`+part+`"`) {
			return true
		}
	}
	return false
}

func TestAlertsAreOfSeriesThatExistAndHaveARunbook(t *testing.T) {
	var rules alerting
	if err := yaml.Unmarshal([]byte(text(t, "deploy/prometheus/alerts.yml")), &rules); err != nil {
		t.Fatal(err)
	}
	code, index, seen := sources(t), text(t, "docs/runbooks/README.md"), map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			seen[r.Alert+".md"] = true
			if r.Alert == "" || r.Expr == "" || r.For == "" || r.Annotations.Summary == "" ||
				r.Labels.Severity != "page" && r.Labels.Severity != "ticket" {
				t.Errorf("incomplete: %+v", r)
			}
			for _, name := range series.FindAllString(r.Expr, -1) {
				if !exported(code, name) {
					t.Errorf("%s is of %s, which is not exported", r.Alert, name)
				}
			}
			if page := text(t, r.Annotations.Runbook); !strings.HasPrefix(page, "# "+r.Alert+"\n") || !strings.Contains(index, "]("+r.Alert+".md)") {
				t.Errorf("%s has no page, or the index does not list it", r.Alert)
			}
		}
	}
	pages, err := filepath.Glob(root + "docs/runbooks/Agentproxy*.md")
	if err != nil || len(pages) != len(seen) || len(seen) < 15 {
		t.Errorf("%d pages of %d alerts, %v", len(pages), len(seen), err)
	}
}

var (
	nameOfAlert = regexp.MustCompile(`alertname="(\w+)"`)
	anySeries   = regexp.MustCompile(`^\w+`)
	ofOutcome   = regexp.MustCompile(`outcome=~?"([a-z_|]+)"`)
)

// Each alert has a test with series that fire it, and one with series of the same names that do not.
func TestEachAlertIsTestedByPromtool(t *testing.T) {
	var rules alerting
	if err := yaml.Unmarshal([]byte(text(t, "deploy/prometheus/alerts.yml")), &rules); err != nil {
		t.Fatal(err)
	}
	var tests struct {
		Tests []struct {
			Name   string
			Series []struct{ Series string } `yaml:"input_series"`
			Expr   []struct {
				Expr    string
				Samples []struct{ Value int } `yaml:"exp_samples"`
			} `yaml:"promql_expr_test"`
		}
	}
	if err := yaml.Unmarshal([]byte(text(t, "deploy/prometheus/alerts_test.yml")), &tests); err != nil {
		t.Fatal(err)
	}
	type reads map[string]bool
	fires, quiet := map[string]reads{}, map[string]reads{}
	for _, c := range tests.Tests {
		for _, e := range c.Expr {
			of := nameOfAlert.FindStringSubmatch(e.Expr)
			if of == nil || !strings.HasPrefix(c.Name, of[1]+" ") || !strings.Contains(e.Expr, `alertstate="firing"`) {
				t.Errorf("%q asks for %s", c.Name, e.Expr)
				continue
			}
			into := quiet
			if len(e.Samples) > 0 {
				into = fires
			}
			if into[of[1]] == nil {
				into[of[1]] = reads{}
			}
			for _, s := range c.Series {
				into[of[1]][anySeries.FindString(s.Series)] = true
			}
		}
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if len(fires[r.Alert]) == 0 || !maps.Equal(fires[r.Alert], quiet[r.Alert]) {
				t.Errorf("%s fires by %v and is quiet by %v", r.Alert, fires[r.Alert], quiet[r.Alert])
			}
			for name := range fires[r.Alert] {
				if !strings.Contains(r.Expr, name) {
					t.Errorf("%s does not read %s", r.Alert, name)
				}
			}
		}
	}
}

// Outcomes that the gateway does not have count nothing.
func TestAlertsAreOfOutcomesThatExist(t *testing.T) {
	code, n := sources(t), 0
	for _, list := range ofOutcome.FindAllStringSubmatch(strings.ReplaceAll(text(t, "deploy/prometheus/alerts.yml"), `\"`, `"`), -1) {
		for _, name := range strings.Split(list[1], "|") {
			if n++; !strings.Contains(code, `"`+name+`"`) && !strings.Contains(code, `"`+strings.ToUpper(name)+`"`) {
				t.Errorf("no connection ends with %s", name)
			}
		}
	}
	if n < 20 {
		t.Errorf("the alerts have %d outcomes", n)
	}
}

func TestTheDashboardIsOfSeriesThatExist(t *testing.T) {
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(text(t, "deploy/grafana/agentproxy.json")), &board); err != nil {
		t.Fatal(err)
	}
	code, n := sources(t), 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			for _, name := range series.FindAllString(target.Expr, -1) {
				if n++; !exported(code, name) {
					t.Errorf("%q shows %s, which is not exported", p.Title, name)
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("the dashboard has %d series", n)
	}
}
