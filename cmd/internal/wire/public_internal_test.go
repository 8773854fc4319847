package wire

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/conns"
	"agentproxy/adapters/gateway/dial"
	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/system"
)

func TestPublicTargets(t *testing.T) {
	gw := hostport.Target{Host: "gw.example.com", Port: 8081}
	for _, c := range []struct {
		url   string
		dev   bool
		admin []string
		want  []hostport.Target
	}{
		{"https://api.example.com", false, nil, []hostport.Target{gw, {Host: "api.example.com", Port: 443}}},
		{"http://api.example.com", false, nil, []hostport.Target{gw, {Host: "api.example.com", Port: 80}}},
		{"http://[2001:db8::7]:8080", false, nil, []hostport.Target{gw, {Host: "2001:db8::7", Port: 8080}}},
		{"https://[2001:db8::7]", false, nil, []hostport.Target{gw, {Host: "2001:db8::7", Port: 443}}},
		{"http://127.0.0.1:8080", true, nil, []hostport.Target{gw}},
		{"http://127.0.0.1:8080", true, []string{"replica-1", "admin.example.com:9443"},
			[]hostport.Target{gw, {Host: "replica-1", Port: 8082}, {Host: "admin.example.com", Port: 9443}}},
	} {
		got := publicTargets(configfile.Settings{PublicHost: gw.Host, PublicPort: int(gw.Port), PublicURL: c.url, Dev: c.dev,
			AdminAddr: "127.0.0.1:8082", AdminHosts: c.admin})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, development %v: %v, want %v", c.url, c.dev, got, c.want)
		}
	}
}

// The API's listener is a target in development mode only, where agents try their proxies.
func TestTheListenersAreNoTargets(t *testing.T) {
	for _, dev := range []bool{false, true} {
		s := configfile.Settings{HTTPAddr: "127.0.0.1:8080", GatewayAddr: "127.0.0.1:8081", AdminAddr: "127.0.0.1:8082", Dev: dev,
			AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		check := gatewayDeps(gatewayIn{Settings: s, Clock: system.Clock{}}).AddressPolicy
		for port, allowed := range map[uint16]bool{8080: dev, 8081: false, 8082: false, 8083: true} {
			err := check.Check(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port))
			if (err == nil) != allowed {
				t.Errorf("development %v, port %d: %v", dev, port, err)
			}
		}
	}
}

func someSecrets(t *testing.T) *system.Secrets {
	t.Helper()
	secrets, err := system.NewSecrets(system.Root("q1nTz0Rk7vJx4mWc9sYb2hLd8fGp5aEu3iOX6NQB"))
	if err != nil {
		t.Fatal(err)
	}
	return secrets
}

func TestTheGatewayHasItsPublicAddress(t *testing.T) {
	secrets := someSecrets(t)
	s := configfile.Settings{PublicHost: "gate.example.com", PublicPort: 8081, PublicURL: "https://api.example.com",
		AdminAddr: "127.0.0.1:8082"}
	if got := gatewayConfig(s, conns.Budget{}, secrets, nil).Public; len(got) != 2 || !slices.Equal(got, publicTargets(s)) {
		t.Errorf("it refuses %v", got)
	}
}

// What limits strangers and accounts reaches both listeners. In development mode guesses are not
// limited.
func TestLimitsReachTheListeners(t *testing.T) {
	s := configfile.Settings{AdminAddr: "127.0.0.1:8082", AgentConnections: 1000, TrialConnections: 100, TargetRate: 600, TrialTargetRate: 60,
		ConnectionRate: 100, TrialConnectionRate: 10, Targets: 2000, TrialTargets: 120}
	s.Catalog.Providers = []configfile.Provider{{Name: "own", Resolve: "here"}, {Name: "seller", Resolve: "upstream"}, {Name: "other"}}
	b := conns.Divide(1024)
	for dev, guesses := range map[bool]int{false: 1000, true: 0} {
		trials := map[bool]int{false: 88, true: 0}[dev] // of 352
		s.Dev = dev
		g, api := gatewayConfig(s, b, someSecrets(t), nil), apiConfig(s, b, nil)
		if g.AuthFailureLimit != guesses || g.Connections != b.Gateway || g.TrialPlaces != trials || g.Agent != 1000 || g.TrialAgent != 100 || g.TargetRate != 600 ||
			g.TrialTargetRate != 60 || g.ConnectionRate != 100 || g.TrialConnectionRate != 10 || g.Targets != 2000 || g.TrialTargets != 120 ||
			api.Connections != b.API || g.PerAddress != perAddress(s) || api.PerAddress != perAddress(s) {
			t.Errorf("development %v: the gateway %+v, the API %+v", dev, g, api)
		}
		want := map[string]dial.Resolution{"own": dial.Here, "seller": dial.Name, "other": dial.Automatic}
		if !maps.Equal(g.Resolve, want) {
			t.Errorf("names are resolved by %v, want %v", g.Resolve, want)
		}
	}
	for _, c := range []struct{ dev, limit, network, all int }{{0, 120, 60, 600}, {0, 0, 0, 0}, {1, 120, 0, 0}} {
		l := limitConfig(configfile.Settings{Dev: c.dev == 1, RegisterLimit: c.limit})
		if l.RegistrationsPerMinute != c.limit || l.NetworkRegistrations != c.network || l.AllRegistrations != c.all {
			t.Errorf("registrations are limited by %+v", l)
		}
	}
	s.Dev = false
	if g := gatewayConfig(s, conns.Divide(65_536), someSecrets(t), nil); g.Connections != 30_848 || g.TrialPlaces != 7712 {
		t.Errorf("of %d places trial accounts have %d", g.Connections, g.TrialPlaces)
	}
	if n := perAddress(configfile.Settings{}); n != 256 {
		t.Errorf("an address has %d connections without a credential", n)
	}
}
