package configfile_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/chain"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/exitfacts"
	"agentproxy/adapters/nats"
	"agentproxy/adapters/redis"
	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/domain/country"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// The sellers of these tests only have capabilities: the traffic of gateway is not
// capped, that of proxyssx is and can be used directly, and proxyseller delivers
// addresses later.
type trafficSeller struct {
	ports.Dynamic
	spec configfile.Provider
}

func (s trafficSeller) Name() string { return s.spec.Name }

func (s trafficSeller) Capabilities() procurement.Capabilities {
	c := procurement.Capabilities{ViaUpstream: true, Direct: s.spec.Kind == "proxyssx"}
	if c.Direct {
		c.CapUnit = 1_000_000_000
	}
	return c
}

type addressSeller struct {
	ports.Static
	spec configfile.Provider
}

func (s addressSeller) Name() string { return s.spec.Name }

func (s addressSeller) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, Async: true}
}

// sourced is what keeps a provider from being warned of.
const sourced = "sourcing: {statement: ours, url: 'https://example.com', reviewed: 2026-11-01}"

// rules are those of the adapters, for the sellers of these tests.
func rules() configfile.Rules {
	return configfile.Rules{
		NewProvider: newSeller,
		ExitDatabase: func(file string) (func(netip.Addr) exit.Known, exit.Fields, time.Time, error) {
			d, err := exitfacts.OpenDatabase(file)
			if err != nil {
				return nil, exit.Fields{}, time.Time{}, err
			}
			return d.Lookup, d.Has(), d.Built(), nil
		},
		Now:              func() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) },
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
		AdminPassword: func(text string) error {
			if len(text) < 12 {
				return errors.New("must have 12 characters")
			}
			return nil
		},
		AdminUsers: func(file string) error {
			_, err := os.Stat(file)
			return err
		},
		AccountKey: func(text string) error {
			_, err := chain.NewAccount(text)
			return err
		},
		TronAddress: chain.ValidAddress,
	}
}

// newSeller fails as upstream.New does; an error of the kind leaky repeats the
// secret.
func newSeller(s configfile.Provider) (ports.Provider, error) {
	var faults []error
	for name := range s.Options {
		if name != "profile" && name != "username" && name != "zone" {
			faults = append(faults, fmt.Errorf("options.%s does not exist", name))
		}
	}
	for name := range s.Secrets {
		if name != "password" && name != "key" {
			faults = append(faults, fmt.Errorf("secrets.%s does not exist", name))
		}
	}
	switch s.Kind {
	case "gateway":
		if s.Secrets["password"] == "" {
			faults = append(faults, errors.New("secrets.password is missing: of the account"))
		}
		if p := s.Options["profile"]; p != "brightdata" {
			faults = append(faults, fmt.Errorf("options.profile must be brightdata, not %q", p))
		}
		return trafficSeller{spec: s}, errors.Join(faults...)
	case "proxyssx":
		return trafficSeller{spec: s}, errors.Join(faults...)
	case "iproyal", "proxyseller":
		return addressSeller{spec: s}, errors.Join(faults...)
	case "leaky":
		return nil, fmt.Errorf("options.zone %s\nis not %s", string(s.Secrets["password"]), string(s.Secrets["key"]))
	}
	return nil, fmt.Errorf("kind must be one of [gateway proxyseller proxyssx], not %q", s.Kind)
}

// write makes a file the configuration of the test: config.yaml in a folder of
// its own, which the test works in.
func write(t *testing.T, text string) {
	t.Helper()
	clean(t)
	t.Chdir(t.TempDir())
	t.Setenv("AGENTPROXY_CONFIG", "config.yaml")
	t.Setenv("AGENTPROXY_EXITS", "203.0.113.7@DE") // else each file outside development mode is warned of
	rewrite(t, text)
}

func rewrite(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile("config.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T) configfile.Settings {
	t.Helper()
	s, err := configfile.Load(rules())
	if err != nil {
		t.Fatalf("refused:\n%v", err)
	}
	return s
}

// wantFaults compares the lines of an error; one that ends in … is a beginning.
func wantFaults(t *testing.T, err error, want ...string) {
	t.Helper()
	var got []string
	if err != nil {
		got = strings.Split(err.Error(), "\n")
	}
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		if start, cut := strings.CutSuffix(want[i], "…"); cut {
			same = strings.HasPrefix(got[i], start)
		} else {
			same = got[i] == want[i]
		}
	}
	if !same {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
