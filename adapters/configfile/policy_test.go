package configfile_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"agentproxy/adapters/configfile"
	"agentproxy/domain/policy"
)

func TestThePolicyWithoutAFile(t *testing.T) {
	clean(t)
	s := load(t)
	for _, port := range []uint16{22, 23, 25, 110, 143, 445, 465, 587, 993, 995, 3389, 6660, 6665, 6669} {
		if d := s.Catalog.Policy.Layers("any", nil, false).Name("example.com", port); d.Layer != policy.Operator || !d.Refuses() {
			t.Errorf("port %d is not denied", port)
		}
	}
	for _, port := range []uint16{80, 443, 8080, 6670, 3390} {
		if s.Catalog.Policy.Layers("any", nil, false).Name("example.com", port).Layer != "" {
			t.Errorf("port %d is denied", port)
		}
	}
}

func TestFaultsOfThePolicy(t *testing.T) {
	write(t, `policy:
  deny: ["*.example.com", {file: missing.txt}, {name: x}, 10.0.0.1/8]
  allow: http
  denied_ports: [ssh]
  ports: ["9-1"]
  mode: report
`)
	_, err := configfile.Load(rules())
	if err == nil {
		t.Fatal("it is accepted")
	}
	for _, want := range []string{`policy.deny[0]: "*.example.com" has a wildcard`, "policy.deny[1].file: cannot read the file", "policy.deny[2].name: unknown key",
		`policy.deny[3]: "10.0.0.1/8" has bits beyond its length; write 10.0.0.0/8`, "policy.allow: must be a list", `policy.denied_ports[0]: "ssh" is not a port`,
		`policy.ports[0]: "9-1" is not a port`, "policy.mode: unknown key"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in\n%v", want, err)
		}
	}
}

// A list of a million hosts is read; one more is refused.
func TestAFileOfAMillionHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a million lines")
	}
	write(t, "policy: {deny: [{file: deny.txt}]}\n")
	const path = "deny.txt"
	var b strings.Builder
	for i := range policy.MaxHosts {
		fmt.Fprintf(&b, "host-%d.example.com\n", i)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s := load(t)
	if s.Catalog.Policy.Operator.DeniedBy("host-999999.example.com") == "" || s.Catalog.Policy.Operator.DeniedBy("host-1000000.example.com") != "" {
		t.Error("the last line is not denied, or what is in none")
	}
	if err := os.WriteFile(path, []byte(b.String()+"one-more.example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "has more than 1000000 rules") {
		t.Errorf("a longer file: %v", err)
	}
}
