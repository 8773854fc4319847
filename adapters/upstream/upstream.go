package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"agentproxy/ports"
)

// Spec is a provider as the operator configured it.
type Spec struct {
	Name string
	Kind string
	// BaseURL replaces the address of the seller's API; empty: the seller's own.
	BaseURL string
	// Secrets and Options are by the names that Kinds lists.
	Secrets map[string]string
	Options map[string]string
	// Locations are the seller's own ids of places, by country ("US") or country
	// and city ("US/newyork"), for sellers that number them.
	Locations map[string]string
	PerSecond float64       // calls of its API; 0: the adapter's default
	Timeout   time.Duration // of a call; 0: the adapter's default
}

// LogValue hides the secrets from logs.
func (s Spec) LogValue() slog.Value { return slog.StringValue(s.Name + " (" + s.Kind + ")") }

// Field is a setting that a kind of provider has.
type Field struct {
	Name     string
	Required bool
	Help     string
}

// Kind is a kind of provider that can be configured.
type Kind struct {
	Secrets, Options []Field
	make             func(Spec, *slog.Logger) (ports.Provider, error)
}

// kinds are the providers that can be configured, by the name in the
// configuration.
var kinds = map[string]Kind{
	"gateway":     gatewayKind,
	"proxyssx":    proxysSXKind,
	"iproyal":     iproyalKind,
	"proxyseller": proxySellerKind,
	"proxycheap":  proxyCheapKind,
}

// Kinds lists the kinds by name.
func Kinds() map[string]Kind { return maps.Clone(kinds) }

// New makes a provider. Its error names every fault of the Spec and no secret.
func New(s Spec, log *slog.Logger) (ports.Provider, error) {
	k, ok := kinds[s.Kind]
	if !ok {
		return nil, fmt.Errorf("kind must be one of %v, not %q", slices.Sorted(maps.Keys(kinds)), s.Kind)
	}
	faults := append(missing("secrets", k.Secrets, s.Secrets), missing("options", k.Options, s.Options)...)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return k.make(s, log)
}

// missing names required settings that are not there, and those that do not
// exist.
func missing(what string, fields []Field, given map[string]string) (faults []error) {
	known := map[string]bool{}
	for _, f := range fields {
		known[f.Name] = true
		if f.Required && given[f.Name] == "" {
			faults = append(faults, fmt.Errorf("%s.%s is missing: %s", what, f.Name, f.Help))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !known[name] {
			faults = append(faults, fmt.Errorf("%s.%s does not exist", what, name))
		}
	}
	return faults
}
