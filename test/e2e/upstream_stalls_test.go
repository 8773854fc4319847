package e2e_test

import (
	"fmt"
	"strconv"
	"testing"

	"agentproxy/test/fake/iproyal"
	"agentproxy/test/fake/proxycheap"
	"agentproxy/test/fake/proxyseller"
	"agentproxy/test/fake/seller"
	"agentproxy/test/fake/upstreamproxy"
)

// stall is a seller of the kill test.
type stall struct {
	provider, product, body string
	server                  *seller.Server
	live                    func() []string // refs of what it has sold and not taken back
	renewals                func() int      // nil: it does not renew
}

// stalls starts the sellers of the kill test and returns their configuration. By
// default it is one of pool keys: those have a name, so that a lost order is found at
// once.
func stalls(t *testing.T) (list []stall, config string, env []string) {
	keys, _, provider := ssx(t)
	list = append(list, stall{provider: "sx", product: "dyn_sx", body: dynamic("dyn_sx", "1"), server: keys.Server, live: func() (refs []string) {
		for _, k := range keys.Keys() {
			refs = append(refs, k.ID)
		}
		return refs
	}})
	providers, products := provider, traffic("sx", "dyn_sx", ", provisioning: sync")
	env = []string{ssxKey}
	if *upstreamAll {
		royal, resi, ps, cheapest := iproyal.New(t), iproyal.New(t), proxyseller.New(t), proxycheap.New(t)
		residential := upstreamproxy.New(t, "iproyal", "unknown", "nothing")
		ps.SetBalance(1e12)
		royal.SetBalance(1e12)
		cheapest.SetBalance(1e12)
		for _, place := range []int64{iproyal.UnitedStates, iproyal.Germany} {
			royal.SetStock(place, 1e6)
		}
		ps.SetStock("USA", 1e6)
		cheapest.SetStock("US", 1e6)
		providers += fmt.Sprintf("  - {name: royal, kind: iproyal, base_url: %q, per_second: 1000, secrets: {key: {env: ROYAL_KEY}}}\n"+
			"  - {name: resi, kind: iproyal, base_url: %q, per_second: 1000, secrets: {residential_key: {env: ROYAL_RESI}}, options: {gateway: \"%s\"}}\n"+
			"  - {name: ps, kind: proxyseller, base_url: %q, per_second: 1000, secrets: {key: {env: PS_KEY}}, options: {purpose: tests}}\n"+
			"  - {name: cheap, kind: proxycheap, base_url: %q, per_second: 1000, options: {balance_unit: dollars}, secrets: {key: {env: CHEAP_KEY}, secret: {env: CHEAP_SECRET}}}\n",
			royal.URL, resi.URL, residential.Addr(), ps.Base(), cheapest.URL)
		products += addresses("royal", "sta_royal", iproyal.SKU) + traffic("resi", "dyn_resi", "") + addresses("ps", "sta_ps", "") +
			addresses("cheap", "sta_cheap", proxycheap.Plan)
		env = append(append(env, cheapEnv...), "ROYAL_KEY="+iproyal.Key, "ROYAL_RESI="+iproyal.ResidentialKey, "PS_KEY="+proxyseller.Key)
		list = append(list,
			stall{"royal", "sta_royal", static("sta_royal", 1), royal.Server, func() (refs []string) {
				for _, o := range royal.Orders() {
					refs = append(refs, strconv.FormatInt(o.ID, 10))
				}
				return refs
			}, func() (n int) {
				for _, o := range royal.Orders() {
					n += o.Extended
				}
				return n
			}},
			stall{provider: "resi", product: "dyn_resi", body: dynamic("dyn_resi", "0.1"), server: resi.Server, live: func() (refs []string) {
				for _, u := range resi.SubUsers() {
					refs = append(refs, u.Hash)
				}
				return refs
			}},
			stall{"ps", "sta_ps", static("sta_ps", 1), ps.Server, ps.Refs, ps.Renewals},
			stall{"cheap", "sta_cheap", static("sta_cheap", 1), cheapest.Server, func() (refs []string) {
				for _, o := range cheapest.Orders() {
					refs = append(refs, o.ID)
				}
				return refs
			}, func() (n int) {
				for _, o := range cheapest.Orders() {
					n += o.Proxies[0].Extended
				}
				return n
			}})
	}
	return list, "embedded: false\nproviders:\n" + providers + "products:\n" + products, env
}
