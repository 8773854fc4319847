package procurement_test

import (
	"strconv"
	"testing"
	"time"

	"agentproxy/adapters/upstream"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/fake/iproyal"
	"agentproxy/test/fake/proxycheap"
	"agentproxy/test/fake/proxyseller"
	"agentproxy/test/fake/proxyssx"
	"agentproxy/test/fake/seller"
	"agentproxy/test/fake/upstreamproxy"
)

// sellers are the fake sellers of one seed. Two providers, isp and resident, are one
// account at the same seller.
type sellers struct {
	gate  *upstreamproxy.Proxy
	pool  *proxyssx.Server
	royal *iproyal.Seller
	ps    *proxyseller.Server
	cheap *proxycheap.Seller
}

// The names of the providers.
const (
	gatewayName  = "gate"
	poolName     = "pool"
	royalName    = "royal"
	ispName      = "isp"
	residentName = "resident"
	cheapName    = "cheap"
)

// gatePassword is the account's at the gateway.
const gatePassword = "gatewaypasswordofthetest"

func openSellers(t *testing.T, seed uint64) *sellers {
	s := &sellers{gate: upstreamproxy.New(t, "proxies.sx", "psxmain", gatePassword), pool: proxyssx.New(t), royal: iproyal.New(t),
		ps: proxyseller.New(t), cheap: proxycheap.New(t)}
	s.pool.Attach(s.gate, "psxacme")
	s.royal.SetBalance(1_000_000 * domain.Dollar)
	s.royal.SetTraffic(1_000_000 * billing.GB)
	s.ps.SetBalance(1_000_000 * domain.Dollar) // its tariff is a TB
	s.ps.SetRenewing(int(seed % 3))
	s.cheap.SetBalance(1_000_000 * domain.Dollar)
	s.stocked()
	for _, one := range s.servers() {
		one.Late = 10 * time.Millisecond
	}
	return s
}

func (s *sellers) servers() map[string]*seller.Server {
	return map[string]*seller.Server{"pool": s.pool.Server, "royal": s.royal.Server, "ps": s.ps.Server, "cheap": s.cheap.Server}
}

// injectFaults makes requests fail at random, also with the sellers' own errors.
func (s *sellers) injectFaults(seed uint64, chance float64) {
	faults := append([]seller.Fault{seller.OutOfStock, seller.NoFunds}, seller.Mixed...)
	for name, one := range s.servers() {
		one.Sometimes(seed+uint64(len(name)), chance, faults...)
	}
}

// stocked gives all sellers enough of everything.
func (s *sellers) stocked() {
	for _, l := range []int64{iproyal.UnitedStates, iproyal.Germany} {
		s.royal.SetStock(l, 100_000)
	}
	for _, c := range []string{"USA", "DEU"} {
		s.ps.SetStock(c, 100_000)
	}
	for _, c := range []string{"US", "DE"} {
		s.cheap.SetStock(c, 100_000)
		s.pool.Stock(c, 10, 10)
	}
}

// specs returns the providers as an operator would configure them.
func (s *sellers) specs() []upstream.Spec {
	gate := map[string]string{"profile": "proxies.sx", "username": "psxmain", "network": "any", "host": "127.0.0.1",
		"port": strconv.Itoa(int(s.gate.Addr().Port()))}
	key := map[string]string{"key": proxyseller.Key}
	specs := []upstream.Spec{
		{Name: gatewayName, Kind: "gateway", Secrets: map[string]string{"password": gatePassword}, Options: gate},
		{Name: poolName, Kind: "proxyssx", BaseURL: s.pool.Base(), Secrets: map[string]string{"api_key": proxyssx.APIKey},
			Options: map[string]string{"username": "psxacme"}},
		{Name: royalName, Kind: "iproyal", BaseURL: s.royal.URL,
			Secrets: map[string]string{"key": iproyal.Key, "residential_key": iproyal.ResidentialKey}},
		{Name: ispName, Kind: "proxyseller", BaseURL: s.ps.Base(), Secrets: key,
			Options: map[string]string{"section": "isp", "purpose": "market research"}},
		{Name: residentName, Kind: "proxyseller", BaseURL: s.ps.Base(), Secrets: key, Options: map[string]string{"section": "resident"}},
		{Name: cheapName, Kind: "proxycheap", BaseURL: s.cheap.URL, Options: map[string]string{"balance_unit": "dollars"},
			Secrets: map[string]string{"key": proxycheap.Key, "secret": proxycheap.Secret, "callback_secret": proxycheap.CallbackSecret}},
	}
	for i := range specs {
		if specs[i].BaseURL != "" {
			specs[i].PerSecond, specs[i].Timeout = 10_000, 5*time.Second
		}
	}
	return specs
}

// secrets are texts that must not be in a log, an error or the open part of the
// database.
var secrets = []string{iproyal.Key, iproyal.ResidentialKey, proxyseller.Key, "fj4948", "58gh", proxycheap.Key, proxycheap.Secret,
	proxycheap.CallbackSecret, proxyssx.APIKey, gatePassword,
	"pak_c0ffee", "pcsecret", "AZT62Dx", "secret42", "pass1", "pass2", "pass3"} // the last are of what is delivered

// prices of the campaign: a GB, and an IP for 30 and 90 days.
const (
	perGB  = 3 * domain.Dollar
	per30  = 5 * domain.Dollar
	per90  = 14 * domain.Dollar
	direct = "dyn_direct"
)

// products returns products of one source and of several, dynamic and static, delivered
// synchronously and asynchronously.
func products() []catalog.Product {
	source := func(provider, sku string, preference int) procurement.Source {
		s := procurement.Source{Provider: provider, SKU: sku, Preference: preference}
		costs := map[string][2]string{royalName: {"2.4", "6.48"}, ispName: {"2", "5"}, cheapName: {"3.39", "10.17"}}
		if c, ok := costs[provider]; ok && sku != "residential" {
			s.Costs = []procurement.Term{{Days: 30, Cost: domain.MustMoney(c[0])}, {Days: 90, Cost: domain.MustMoney(c[1])}}
		}
		return s
	}
	gate, pool := source(gatewayName, "", 9), source(poolName, "", 0)
	traffic, resident := source(royalName, "residential", 1), source(residentName, "resident", 2)
	royal, isp, cheap := source(royalName, iproyal.SKU, 1), source(ispName, "isp", 0), source(cheapName, proxycheap.Plan, 2)
	dynamic := func(no string, async bool, from ...procurement.Source) catalog.Product {
		return catalog.Product{No: no, Name: no, Type: session.Dynamic, Price: perGB, Countries: []string{"DE", "US"}, MinQuantity: 1,
			MaxQuantity: 1, MinBytes: billing.GB / 10, MaxBytes: 100 * billing.GB, Available: true, Async: async, Sources: from}
	}
	static := func(no string, async bool, from ...procurement.Source) catalog.Product {
		return catalog.Product{No: no, Name: no, Type: session.Static, Durations: []catalog.Duration{{Days: 30, Price: per30}, {Days: 90, Price: per90}},
			Countries: []string{"DE", "US"}, MinQuantity: 1, MaxQuantity: 10, Available: true, Async: async, Sources: from}
	}
	straight := dynamic(direct, false, traffic)
	straight.Direct = true
	return []catalog.Product{
		dynamic("dyn_gate", false, gate), dynamic("dyn_pool", false, pool), dynamic("dyn_resident", true, resident), straight,
		dynamic("dyn_two", true, traffic, resident), dynamic("dyn_many", false, pool, traffic, resident, gate),
		static("sta_royal", true, royal), static("sta_isp", false, isp), static("sta_cheap", true, cheap),
		static("sta_two", false, cheap, isp), static("sta_many", true, isp, royal, cheap),
	}
}
