// Package upstream is the list of the kinds of providers that sell for a seller of proxies. Each has a package below it
// that declares its settings; kind is what they register with, rest the HTTP client that they share.
package upstream

import (
	"fmt"
	"log/slog"
	"slices"

	"agentproxy/adapters/upstream/gateway"
	"agentproxy/adapters/upstream/iproyal"
	"agentproxy/adapters/upstream/kind"
	"agentproxy/adapters/upstream/list"
	"agentproxy/adapters/upstream/proxycheap"
	"agentproxy/adapters/upstream/proxyseller"
	"agentproxy/adapters/upstream/proxyssx"
	"agentproxy/adapters/upstream/webshare"
	"agentproxy/ports"
)

type (
	// Spec is a provider as the operator configured it.
	Spec = kind.Spec
	// Env is what the service has for a provider.
	Env = kind.Env
)

// kinds are the kinds, by name.
var kinds = []kind.Kind{gateway.Kind, iproyal.Kind, list.Kind, proxycheap.Kind, proxyseller.Kind, proxyssx.Kind,
	webshare.Kind}

// Kinds returns the kinds by name.
func Kinds() []kind.Kind { return slices.Clone(kinds) }

// New creates a provider. Its error names every invalid setting and no secret.
func New(s Spec, log *slog.Logger) (ports.Provider, error) {
	var names []string
	for _, k := range kinds {
		if k.Name == s.Kind {
			return k.New(s, log)
		}
		names = append(names, k.Name)
	}
	return nil, fmt.Errorf("kind must be one of %v, not %q", names, s.Kind)
}
