package configfile_test

import (
	"errors"
	"testing"
	"time"

	"agentproxy/adapters/configfile"
)

func TestWhereAProviderGetsItsAddressesIsAskedFor(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	const missing = "config.yaml:2: providers[0].sourcing: is missing: …"
	note := func(reviewed string) string {
		return "    sourcing:\n      statement: paid peers\n      url: https://example.com/sourcing\n      reviewed: " + reviewed + "\n"
	}
	for _, c := range []struct {
		claim, text string
		faults      []string
		warnings    []string
	}{
		{"nothing is noted", "", nil, []string{missing}},
		{"it was reviewed today", note("2026-11-22"), nil, nil},
		{"it was reviewed a year ago to the day", note("2025-11-22"), nil, nil},
		{"it was reviewed a year and a day ago", note("2025-11-21"), nil,
			[]string{"config.yaml:4: providers[0].sourcing: was reviewed on 2025-11-21, more than a year ago: …"}},
		{"it is reviewed in the future", note("2027-01-01"), []string{"config.yaml:7: providers[0].sourcing.reviewed: must not be in the future"}, nil},
		{"the day is no day", note("last week"), []string{"config.yaml:7: providers[0].sourcing.reviewed: must be a day as YYYY-MM-DD"}, nil},
		{"the URL is not https", "    sourcing: {statement: x, url: 'http://example.com', reviewed: '2026-11-01'}\n",
			[]string{"config.yaml:4: providers[0].sourcing.url: must be an https URL without user info"}, nil},
		{"a part is missing", "    sourcing: {url: 'https://example.com', reviewed: '2026-11-01'}\n",
			[]string{"config.yaml:4: providers[0].sourcing.statement: is missing: …"}, nil},
		{"an unknown part", "    sourcing: {statement: x, url: 'https://example.com', reviewed: '2026-11-01', by: me}\n",
			[]string{"config.yaml:4: providers[0].sourcing.by: unknown key"}, nil},
	} {
		t.Run(c.claim, func(t *testing.T) {
			write(t, "providers:\n  - name: x\n    kind: proxyssx\n"+c.text)
			r := rules()
			r.Now = func() time.Time { return now }
			s, err := configfile.Load(r)
			wantFaults(t, err, c.faults...)
			var warned []error
			for _, w := range s.Warnings {
				warned = append(warned, w)
			}
			wantFaults(t, errors.Join(warned...), c.warnings...)
		})
	}
}
