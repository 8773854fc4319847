package configfile_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/upstream"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// The sellers of these tests do nothing but say what they could: traffic of the
// kind gateway is not capped, that of proxyssx is and may be given to agents, and
// proxyseller sells addresses, later.
type trafficSeller struct {
	ports.Dynamic
	spec upstream.Spec
}

func (s trafficSeller) Name() string { return s.spec.Name }

func (s trafficSeller) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, Direct: s.spec.Kind == "proxyssx"}
}

type addressSeller struct {
	ports.Static
	spec upstream.Spec
}

func (s addressSeller) Name() string { return s.spec.Name }

func (s addressSeller) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, Async: true}
}

// makeSeller refuses as upstream.New does, and leaks the secret of a kind of its
// own.
func makeSeller(s upstream.Spec, _ *slog.Logger) (ports.Provider, error) {
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
		return nil, fmt.Errorf("options.zone %s\nis not %s", s.Secrets["password"], s.Secrets["key"])
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
	s, err := configfile.LoadWith(makeSeller)
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
