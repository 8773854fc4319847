// Package doctor checks an installation before it is opened to strangers: it turns settings, files and
// what was measured into findings for the operator. It neither changes anything nor repeats a secret.
package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"agentproxy/adapters/configfile"
)

// Level is how much a finding matters.
type Level string

// Error: do not open before it is mended. Warning: check that it is intended. OK: no fault.
const (
	Error   Level = "error"
	Warning Level = "warning"
	OK      Level = "ok"
)

// Finding is the result of one check.
type Finding struct {
	Level Level  `json:"level"`
	Check string `json:"check"` // stable name
	What  string `json:"what"`
	Why   string `json:"why,omitempty"`
	Do    string `json:"do,omitempty"`
}

// Findings is a list of results.
type Findings []Finding

func (f *Findings) add(level Level, check, what, why, do string) {
	*f = append(*f, Finding{level, check, what, why, do})
}

func (f *Findings) ok(check, format string, args ...any) {
	f.add(OK, check, fmt.Sprintf(format, args...), "", "")
}

// Count returns how many findings have a level.
func (f Findings) Count(level Level) (n int) {
	for _, x := range f {
		if x.Level == level {
			n++
		}
	}
	return n
}

// Sorted returns the findings, errors first.
func (f Findings) Sorted() Findings {
	rank := map[Level]int{Error: 0, Warning: 1, OK: 2}
	list := slices.Clone(f)
	slices.SortStableFunc(list, func(a, b Finding) int { return cmp.Compare(rank[a.Level], rank[b.Level]) })
	return list
}

// Configuration checks what keeps the configuration from being loaded, and what it warns of.
func Configuration(faults, warnings []configfile.Fault) (f Findings) {
	for _, x := range faults {
		f.add(Error, "configuration", x.Error(), "The service does not start with it.", "Correct it; agentproxy config "+
			"check lists all faults.")
	}
	for _, x := range warnings {
		f.add(Warning, "configuration", x.Error(), "It is probably not what you mean.",
			"Correct it, or leave it if you know why.")
	}
	if len(f) == 0 {
		f.ok("configuration", "The configuration has no fault.")
	}
	return f
}

// Settings checks the settings alone.
func Settings(s configfile.Settings) (f Findings) {
	f.mode(s)
	f.addresses(s)
	f.certificate(s)
	f.contact(s)
	f.admin(s)
	f.proxies(s)
	f.networks(s)
	f.accounts(s)
	f.limits(s)
	f.payments(s)
	f.secrets(s)
	f.exits(s)
	f.products(s)
	return f
}

func (f *Findings) mode(s configfile.Settings) {
	if s.Dev {
		f.add(Error, "development_mode", "Development mode is on.",
			"Agents reach loopback addresses of this host, profiles are served, and registration, guesses and connections "+
				"have no limit.",
			"Set AGENTPROXY_DEV=false, and the public addresses.")
		return
	}
	f.ok("development_mode", "Development mode is off.")
	if s.LogLevel == "debug" {
		f.add(Warning, "log_level", "The log level is debug.", "The log grows with each connection of a stranger.",
			"Set AGENTPROXY_LOG_LEVEL=info.")
	}
}
