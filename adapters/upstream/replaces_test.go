package upstream_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentproxy/adapters/upstream"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/ports"
)

// settings are the least that each kind takes to sell addresses, or traffic if it has no addresses.
var settings = map[string]map[string]string{
	"gateway": {"profile": "oxylabs", "username": "bob"}, "proxyssx": {"username": "psx_bob"}, "list": {"sold_as": "static", "file": "own.txt"},
	"webshare": {"sold_as": "static"}, "iproyal": {}, "proxyseller": {"purpose": "research"}, "proxycheap": {},
}

// open creates a provider of a kind with all its secrets.
func open(t *testing.T, kind string, options map[string]string) ports.Provider {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "own.txt"), []byte("198.51.100.1:8080\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := upstream.Spec{Name: kind, Kind: kind, Dir: dir, Options: options, Secrets: map[string]string{}}
	for _, k := range upstream.Kinds() {
		for _, f := range k.Settings {
			if f.Secret && k.Name == kind && kind != "list" {
				s.Secrets[f.Name] = "psx_secret12345678"
			}
		}
	}
	p, err := upstream.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestThePageNamesWhoReplacesAddresses compares the table of docs/providers.md with what each kind does. A kind without a documented call
// of its seller is no ports.Replacer.
func TestThePageNamesWhoReplacesAddresses(t *testing.T) {
	text, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "## Replacing one address\n")
	part, _, _ = strings.Cut(part, "\n## ")
	documented := map[string]string{}
	for line := range strings.Lines(part) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, k := range upstream.Kinds() {
			if strings.Contains(cells[1], "`"+k.Name+"`") {
				documented[k.Name] = strings.TrimSpace(cells[2])
			}
		}
		if strings.TrimSpace(cells[1]) == embedded.Name {
			documented[embedded.Name] = strings.TrimSpace(cells[2])
		}
	}
	own, err := embedded.New(embedded.Config{Everywhere: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	providers := map[string]ports.Provider{embedded.Name: own}
	for _, k := range upstream.Kinds() {
		providers[k.Name] = open(t, k.Name, settings[k.Name])
	}
	for kind, p := range providers {
		want := "no"
		if slices.Contains(ports.Can(p), "replaces") {
			want = "yes"
		}
		if documented[kind] != want {
			t.Errorf("%s is documented to replace addresses: %q, want %s", kind, documented[kind], want)
		}
		if _, is := p.(ports.Replacer); is != (want == "yes" && kind != embedded.Name) {
			t.Errorf("%s is a Replacer: %v", kind, is)
		}
	}
	for _, kind := range []string{"list", "webshare"} {
		options := maps.Clone(settings[kind])
		options["sold_as"] = "dynamic"
		if slices.Contains(ports.Can(open(t, kind, options)), "replaces") {
			t.Errorf("%s replaces addresses where it sells traffic", kind)
		}
	}
	options := map[string]string{"section": "resident"}
	if slices.Contains(ports.Can(open(t, "proxyseller", options)), "replaces") {
		t.Error("proxyseller replaces addresses where it sells traffic")
	}
}
