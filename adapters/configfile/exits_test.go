package configfile_test

import (
	"os"
	"strings"
	"testing"

	"agentproxy/adapters/configfile"
)

// Outside development mode nothing is sold of a host that declares no address.
func TestExitsAreDeclaredOutsideDevelopmentMode(t *testing.T) {
	const fromHost = "products: [{code: mine, name: Mine, type: dynamic, price: 2, countries: [DE], sources: [{provider: embedded}]}]\n"
	for claim, c := range map[string]struct {
		file      string
		warned    bool
		faultOver string // of a product
	}{
		"development mode":           {"dev: true\n" + fromHost, false, ""},
		"declared":                   {"dev: false\nexits: [203.0.113.7@DE]\n" + fromHost, false, ""},
		"none":                       {"dev: false\n", true, ""},
		"none, and others' alone":    {"dev: false\nembedded: false\n", false, ""},
		"none, and a product of it":  {"dev: false\n" + fromHost, true, "mine"},
		"none, and only own product": {"dev: false\nembedded: false\n" + fromHost, false, "mine"},
	} {
		t.Run(claim, func(t *testing.T) {
			write(t, c.file)
			os.Unsetenv("AGENTPROXY_EXITS") // write restores it
			s, err := configfile.Load(rules())
			warned := false
			for _, w := range s.Warnings {
				warned = warned || strings.Contains(w.Error(), "AGENTPROXY_EXITS")
			}
			if warned != c.warned {
				t.Errorf("warnings: %v", s.Warnings)
			}
			found := ""
			for _, f := range configfile.FaultsOf(err) {
				if strings.Contains(f.Error(), "AGENTPROXY_EXITS") {
					found = f.Error()
				}
			}
			if (found != "") != (c.faultOver != "") || !strings.Contains(found, c.faultOver) {
				t.Errorf("faults: %v", err)
			}
		})
	}
}
