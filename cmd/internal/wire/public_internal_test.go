package wire

import (
	"net/netip"
	"slices"
	"testing"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/conns"
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
		judge := gatewayDeps(s, nil, nil, nil, nil, nil, system.Clock{}, nil, nil).Judge
		for port, allowed := range map[uint16]bool{8080: dev, 8081: false, 8082: false, 8083: true} {
			err := judge.Judge(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port))
			if (err == nil) != allowed {
				t.Errorf("development %v, port %d: %v", dev, port, err)
			}
		}
	}
}

func TestTheGatewayKnowsWhereItIsReached(t *testing.T) {
	secrets, err := system.NewSecrets(system.Root("q1nTz0Rk7vJx4mWc9sYb2hLd8fGp5aEu3iOX6NQB"))
	if err != nil {
		t.Fatal(err)
	}
	s := configfile.Settings{PublicHost: "gate.example.com", PublicPort: 8081, PublicURL: "https://api.example.com",
		AdminAddr: "127.0.0.1:8082"}
	if got := gatewayConfig(s, conns.Budget{}, secrets).Public; len(got) != 2 || !slices.Equal(got, publicTargets(s)) {
		t.Errorf("it refuses %v", got)
	}
}
