package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/fake/upstreamproxy"
)

// gates are gateways of three sellers: by HTTP and by SOCKS5, with the exit in the
// user name and in the password.
var gates = []struct{ name, profile, protocol, user, provisioning, more string }{
	{"brd", "brightdata", "http", "hl1", "sync", ", zone: resi"},
	{"royal", "iproyal", "socks5", "acct1", "async", ""},
	{"imp", "dataimpulse", "socks5", "login1", "sync", ""},
}

// gated returns a configuration of the gates, and their fakes.
func gated(t *testing.T) (config string, proxies []*upstreamproxy.Proxy, env []string) {
	var providers, products strings.Builder
	for _, g := range gates {
		p := upstreamproxy.New(t, g.profile, g.user, "Secret9"+g.name)
		proxies = append(proxies, p)
		env = append(env, strings.ToUpper(g.name)+"_PASSWORD=Secret9"+g.name)
		fmt.Fprintf(&providers, "  - {name: %s, kind: gateway, secrets: {password: {env: %s_PASSWORD}}, options: {profile: %s, username: %s, host: 127.0.0.1, port: %d, protocol: %s%s}}\n",
			g.name, strings.ToUpper(g.name), g.profile, g.user, p.Addr().Port(), g.protocol, g.more)
		fmt.Fprintf(&products, "  - {code: dyn_%s, name: Traffic of %s, type: dynamic, price: \"3.00\", min_traffic_gb: 0.001, trial_credit: true, provisioning: %s, sources: [{provider: %s, cost: \"2.00\", countries: [DE, US]}]}\n",
			g.name, g.name, g.provisioning, g.name)
	}
	return "embedded: false\nproviders:\n" + providers.String() + "products:\n" + products.String(), proxies, env
}

func TestTrafficOfGatewaysIsSoldAsOurs(t *testing.T) {
	t.Parallel()
	config, proxies, env := gated(t)
	m := open(t, config, env...)
	key, agent := m.register("upstream")
	sold := m.deliveries(key)
	if len(sold) != len(gates) {
		t.Fatalf("the products are %v", sold)
	}
	var ids []string
	for i, g := range gates {
		if how := sold["dyn_"+g.name]; how != "gateway" {
			t.Errorf("%s is delivered by %q", g.name, how)
		}
		status := map[string]int{"sync": 201, "async": 202}[g.provisioning]
		var d apiclient.Session
		m.must(status, "POST", "/sessions", key, dynamic("dyn_"+g.name, "1")).into(t, &d)
		within(t, soon, "activation", func() bool { d = m.session(key, d.SessionID); return d.Status == "active" })
		ids = append(ids, d.SessionID)
		if !strings.Contains(d.Proxy.FullURL, m.gateway) {
			t.Errorf("the address of %s is %s, not the gateway's", g.name, d.Proxy.FullURL)
		}
		m.keepsAndRotates(key, d)
		for _, seen := range proxies[i].Sessions() {
			if want := map[string]string{"http": "connect", "socks5": "socks5"}[g.protocol]; seen.Protocol != want || seen.Country != "US" || seen.Session == "" {
				t.Errorf("%s was asked for %+v", g.name, seen)
			}
		}
		m.ends(key, d)
	}
	m.stopsAtItsCap(key, "dyn_royal")
	_, metrics := m.page("/metrics")
	m.noIDs(metrics, append(ids, agent)...)
	m.keepsSecret(key, ids, "Secret9brd", "Secret9royal", "Secret9imp", "brd-customer", "hl1-zone", "login1__", "acct1")
	m.verify()
}
