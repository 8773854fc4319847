package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestConfigCheck(t *testing.T) {
	started(t)
	status, out, errOut := command("config", "check")
	if status != 0 || out != "ok: 2 providers, 0 products\n" || errOut != "" {
		t.Errorf("%d: %q%q", status, out, errOut)
	}
	if _, err := os.Stat("nowhere"); err == nil {
		t.Error("the check made a database")
	}
	configure(t, "products:\n  - {code: a, name: A, type: dynamic, price: 1, sources: [{provider: shop}]}\nproviders:\n  - {name: shop, kind: remote, "+sourced()+"}\n")
	status, out, _ = command("config", "check")
	if status != 0 || out != "warning: config.yaml:2: products[0].sources[0]: has no cost, so a price below the cost would not be noticed\n"+
		"ok: 1 provider, 1 product\n" {
		t.Errorf("%d: %q", status, out)
	}
	status, out, _ = command("--json", "config", "check")
	var result struct {
		OK                  bool
		Providers, Products int
		Problems, Warnings  []problem
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || status != 0 || !result.OK || result.Providers != 1 || result.Products != 1 ||
		result.Problems == nil || len(result.Warnings) != 1 || result.Warnings[0].Line != 2 {
		t.Errorf("%d: %s", status, out)
	}
}

func TestConfigCheckListsEveryProblem(t *testing.T) {
	configure(t, "trial_days: 0\nproviders:\n  - name: shop\n    kind: remote\n    secrets: {key: hunter2}\n    "+sourced()+"\n")
	t.Setenv("AGENTPROXY_LOG_LEVEL", "loud")
	want := []string{"config.yaml:1: trial_days: must be 1 or more", "config.yaml:5: providers[0].secrets.key: must not be a secret itself; write {env: VARIABLE} or {file: PATH}",
		"AGENTPROXY_LOG_LEVEL: must be one of debug, info, warn, error"}
	status, out, errOut := command("config", "check")
	if status != 1 || out != strings.Join(want, "\n")+"\n" || errOut != "agentproxy: the configuration has 3 problems\n" {
		t.Errorf("%d:\n%s%s", status, out, errOut)
	}
	status, out, _ = command("--json", "config", "check")
	var result struct {
		OK       bool
		Problems []problem
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || status != 1 || result.OK || len(result.Problems) != 3 ||
		result.Problems[0] != (problem{"config.yaml", 1, "trial_days", "must be 1 or more"}) || result.Problems[2].File != "" {
		t.Errorf("%d: %s", status, out)
	}
	if strings.Contains(out, "hunter2") {
		t.Error("a secret is printed")
	}
}
