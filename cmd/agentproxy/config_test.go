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
	if status != 0 || !strings.HasPrefix(out, "ok: 2 providers, 0 products\n\nSold:\nCODE ") || !strings.Contains(out, "dyn_fast_1") || errOut != "" {
		t.Errorf("%d: %q%q", status, out, errOut)
	}
	if _, err := os.Stat("nowhere"); err == nil {
		t.Error("the check made a database")
	}
	configure(t, "products:\n  - {code: a, name: A, type: dynamic, price: 1, sources: [{provider: shop}]}\nproviders:\n  - {name: shop, kind: remote, "+sourced()+"}\n")
	status, out, _ = command("config", "check")
	if status != 0 || !strings.HasPrefix(out, "warning: config.yaml:2: products[0].sources[0]: has no cost, so a price below the cost would not be noticed\n"+
		"ok: 1 provider, 1 product\n") {
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

// The addresses are those of BIP-44 for the key, which chain's tests take from a wallet.
func TestConfigCheckShowsWhatIsSoldAndWhereItIsPaid(t *testing.T) {
	const xpub = "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd"
	configure(t, "embedded: false\ntron_xpub: "+xpub+"\nproducts:\n  - {code: de, name: Germany, type: static, durations: [{days: 30, price: 3.5}], countries: [DE], "+
		"sources: [{provider: quiet, costs: [{days: 30, cost: 2.1}]}]}\nproviders:\n  - {name: quiet, kind: silent, "+sourced()+"}\n")
	status, out, errOut := command("--json", "config", "check")
	var result struct {
		Sold      []map[string]any
		Addresses []string `json:"payment_addresses"`
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || status != 0 || len(result.Sold) != 1 || len(result.Addresses) != 3 {
		t.Fatalf("%d: %s%s", status, out, errOut)
	}
	if s := result.Sold[0]; s["code"] != "de" || s["term"] != "30 days" || s["price"] != "3.5" || s["cost"] != "2.1" || s["margin"] != "1.4" || s["seller"] != "quiet" {
		t.Errorf("sold: %v", s)
	}
	status, out, _ = command("config", "check")
	for _, want := range append(result.Addresses, "de    static  30 days  3.5    2.1   1.4     quiet") {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("%d: no %q in\n%s", status, want, out)
		}
	}
	if result.Addresses[0] == result.Addresses[1] || !strings.HasPrefix(result.Addresses[0], "T") {
		t.Errorf("the addresses are %q", result.Addresses)
	}
}

func TestConfigInitWritesWhatCheckAccepts(t *testing.T) {
	configure(t, "")
	if status, _, errOut := command("config", "init", "new.yaml"); status != 0 {
		t.Fatal(errOut)
	}
	before, _ := os.ReadFile("new.yaml")
	if status, _, errOut := command("config", "init", "new.yaml"); status != 1 || !strings.Contains(errOut, "new.yaml exists") {
		t.Errorf("it is overwritten: %d %s", status, errOut)
	}
	if after, _ := os.ReadFile("new.yaml"); len(before) == 0 || string(after) != string(before) {
		t.Error("the file changed")
	}
	os.Unsetenv("AGENTPROXY_DATABASE_URL")
	t.Setenv("AGENTPROXY_CONFIG", "new.yaml")
	os.Unsetenv("AGENTPROXY_EXITS")
	status, out, errOut := command("config", "check")
	if !strings.HasPrefix(out, "warning: AGENTPROXY_EXITS: declares no address of this host") || strings.Contains(out, "dyn_") {
		t.Errorf("without exits: %s", out)
	}
	if status != 0 || strings.Contains(out, "new.yaml:") {
		t.Errorf("%d: %s%s", status, out, errOut)
	}
}
