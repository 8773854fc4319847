package wire

import (
	"fmt"
	"log/slog"
	"time"

	"agentproxy/adapters/admin/signin"
	"agentproxy/adapters/certificate"
	"agentproxy/adapters/chain"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/nats"
	"agentproxy/adapters/redis"
	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/adapters/upstream"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/domain/country"
	"agentproxy/ports"
)

// Providers are the configured providers, in the order of the file.
type Providers []ports.Provider

// Loader loads the configuration and creates the providers that it names.
type Loader struct {
	// New creates a provider; nil is upstream.New. Its error lists every fault of
	// the settings and no secret.
	New func(upstream.Spec, *slog.Logger) (ports.Provider, error)
}

// Load reads and checks the configuration.
func (l Loader) Load() (configfile.Settings, error) { return configfile.Load(l.rules()) }

// LoadProviders is like Load and leaves the products unread.
func (l Loader) LoadProviders() (configfile.Settings, error) {
	rules := l.rules()
	rules.WithoutProducts = true
	return configfile.Load(rules)
}

// reload is like Load for a service that runs with providers.
func (l Loader) reload(running Providers) (configfile.Settings, error) {
	rules := l.rules()
	rules.Running, rules.Certificate = running, nil // it is read again by itself
	return configfile.Load(rules)
}

func (l Loader) rules() configfile.Rules {
	return configfile.Rules{
		NewProvider: func(p configfile.Provider) (ports.Provider, error) {
			return l.provider(p, upstream.Env{}, slog.New(slog.DiscardHandler))
		},
		ExitDatabase:     exitDatabase,
		Now:              time.Now,
		EmbeddedProvider: embedded.Name,
		EmbeddedCodes:    embedded.Codes(),
		Countries:        country.Codes,
		DatabaseURL:      func(text string) error { return storage.URL(text).Check() },
		RateLimitURL:     redis.Check,
		TelemetryURL:     nats.Check,
		RootSecret: func(text string) error {
			_, err := system.ParseRoot(text)
			return err
		},
		AdminPassword: signin.CheckPassword,
		AdminUsers: func(file string) error {
			_, err := signin.Load(file)
			return err
		},
		Certificate: func(certFile, keyFile string) error { return certificate.Check(certFile, keyFile, time.Now()) },
		AccountKey: func(text string) error {
			_, err := chain.NewAccount(text)
			return err
		},
		TronAddress: chain.ValidAddress,
	}
}

// Providers creates the configured providers for an environment. Load has created each once, so it
// does not fail for a fault of the file.
func (l Loader) Providers(c configfile.CatalogConfig, env upstream.Env, log *slog.Logger) (Providers, error) {
	list := make(Providers, len(c.Providers))
	for i, p := range c.Providers {
		created, err := l.provider(p, env, log)
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", p.Name, err)
		}
		list[i] = created
	}
	return list, nil
}

func (l Loader) provider(p configfile.Provider, env upstream.Env, log *slog.Logger) (ports.Provider, error) {
	spec := upstream.Spec{Name: p.Name, Kind: p.Kind, BaseURL: p.BaseURL, Secrets: map[string]string{}, Options: p.Options,
		Locations: p.Locations, PerSecond: p.PerSecond, Timeout: p.Timeout, Dir: p.Dir, Env: env}
	for name, secret := range p.Secrets {
		spec.Secrets[name] = string(secret)
	}
	if l.New != nil {
		return l.New(spec, log)
	}
	return upstream.New(spec, log)
}
