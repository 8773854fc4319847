package configfile_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/configfile"
	"agentproxy/domain/exit"
)

const twoRanges = "# a comment\n\n127.0.0.5/32 country=LT network_type=hosting\n10.0.0.0/8 country=US\n"

// save writes a file beside the configuration, whose facts are of a day.
func save(t *testing.T, name, text, day string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.DateOnly, day)
	if err == nil {
		err = os.Chtimes(name, at, at)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestExitFacts(t *testing.T) {
	write(t, `exit_facts:
  - {kind: ranges, file: ranges.txt}
  - {kind: dnsbl, zone: Bl.Example.net, label: example, resolver: "127.0.0.1:5353"}
  - {kind: dnsbl, zone: other.example.net., label: o.2}
`)
	save(t, "ranges.txt", twoRanges, "2026-11-01")
	s := load(t)
	facts := s.Catalog.ExitFacts
	if len(facts) != 3 {
		t.Fatalf("%d sources", len(facts))
	}
	if got := facts[0].File(netip.MustParseAddr("127.0.0.5")); got.Country != "LT" || got.Network != exit.Hosting {
		t.Errorf("the ranges have %+v", got)
	}
	if l := facts[1]; l.File != nil || l.Zone != "bl.example.net" || l.Label != "example" || l.Resolver != "127.0.0.1:5353" {
		t.Errorf("the list is %+v", l)
	}
	for _, w := range s.Warnings {
		if strings.Contains(w.Error(), "exit_facts") {
			t.Errorf("warned of %v", w)
		}
	}
}

func TestOldExitFactsAreDoubtful(t *testing.T) {
	write(t, "exit_facts:\n  - {kind: ranges, file: ranges.txt}\n")
	for day, old := range map[string]bool{"2026-10-24": false, "2026-10-22": true} { // it is 22 November
		save(t, "ranges.txt", twoRanges, day)
		warned := false
		for _, w := range load(t).Warnings {
			warned = warned || strings.Contains(w.Error(), "exit_facts[0].file: has facts from "+day)
		}
		if warned != old {
			t.Errorf("facts of %s: warned %v", day, warned)
		}
	}
}

func TestFaultsOfExitFacts(t *testing.T) {
	write(t, `exit_facts:
  - {kind: mmdb, file: missing.mmdb}
  - {kind: mmdb, file: ranges.txt}
  - {kind: ranges, file: ranges.txt}
  - {kind: ranges}
  - {kind: csv, file: ranges.txt}
  - {kind: dnsbl, zone: "bl example", label: Big, resolver: localhost}
  - {kind: dnsbl, file: x, zone: bl.example.net}
  - {kind: ranges, file: many.txt, zone: bl.example.net}
  - {file: ranges.txt}
  - {kind: mmdb, files: x}
`)
	save(t, "ranges.txt", "10.0.0.0/8 country=US\n10.0.0.1/8 country=US\n\n10.1.0.0/16 risk=5\n", "2026-11-01")
	save(t, "many.txt", strings.Repeat("x\n", 20), "2026-11-01")
	_, err := configfile.Load(rules())
	if err == nil {
		t.Fatal("it is accepted")
	}
	for _, want := range []string{"exit_facts[0].file: cannot be read: no such file", "exit_facts[1].file: cannot be read: is not a MaxMind database",
		"exit_facts[2].file: line 2: 10.0.0.1/8 has bits beyond its prefix; the network is 10.0.0.0/8",
		`exit_facts[2].file: line 4: "risk" is not the name of a fact`, "exit_facts[3].file: is missing", "exit_facts[4].kind: must be mmdb, ranges or dnsbl",
		"exit_facts[5].zone: must be the name of a DNS zone", "exit_facts[5].label: must be 1 to 32", "exit_facts[5].resolver: must be the address and port",
		"exit_facts[6].file: is for mmdb and ranges", "exit_facts[6].label: is missing", "exit_facts[7].zone: is for lists",
		"exit_facts[7].file: line 10: ", "exit_facts[7].file: has more faults", "exit_facts[8].kind: is missing", "exit_facts[9].files: unknown key"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "line 11") {
		t.Errorf("all faults of a file are listed:\n%v", err)
	}
	write(t, "exit_facts:\n"+strings.Repeat("  - {kind: dnsbl, zone: bl.example.net, label: a}\n", 17))
	if _, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "more than 16 sources") {
		t.Errorf("17 sources: %v", err)
	}
}
