package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/fake/iproyal"
	"agentproxy/test/fake/proxycheap"
	"agentproxy/test/fake/proxyseller"
	"agentproxy/test/fake/proxyssx"
	"agentproxy/test/fake/upstreamproxy"
)

// ssx starts a seller of pool keys and its gateway, and returns their configuration.
func ssx(t *testing.T) (s *proxyssx.Server, gate *upstreamproxy.Proxy, provider string) {
	gate = upstreamproxy.New(t, "proxies.sx", "psx_acme", "pak_nobody")
	s = proxyssx.New(t)
	s.Attach(gate, "psx_acme")
	return s, gate, fmt.Sprintf("  - {name: sx, kind: proxyssx, base_url: %q, per_second: 1000, secrets: {api_key: {env: SX_KEY}}, options: {username: psx_acme, host: 127.0.0.1, port: %d}}\n",
		s.Base(), gate.Addr().Port())
}

const ssxKey = "SX_KEY=" + proxyssx.APIKey

// traffic returns the configuration of a product of one provider that sells by the GB.
func traffic(provider, code, more string) string {
	return fmt.Sprintf("  - {code: %s, name: Traffic, type: dynamic, price: \"3.00\", min_traffic_gb: 0.001, trial_credit: true%s, sources: [{provider: %s, cost: \"2.00\", countries: [DE, US]}]}\n",
		code, more, provider)
}

// wholeTraffic returns the configuration of a direct product, which is sold in whole GB.
func wholeTraffic(provider, code string) string {
	return strings.Replace(traffic(provider, code, ", direct: true"), "min_traffic_gb: 0.001", "min_traffic_gb: 1", 1)
}

// addresses returns the configuration of a product of one provider that sells addresses.
func addresses(provider, code, sku string) string {
	return fmt.Sprintf("  - {code: %s, name: Addresses, type: static, trial_credit: true, durations: [{days: 30, price: \"9.00\"}], sources: [{provider: %s, sku: %q, costs: [{days: 30, cost: \"4.00\"}], countries: [DE, US]}]}\n",
		code, provider, sku)
}

func TestPoolKeysAreSoldAsOurs(t *testing.T) {
	t.Parallel()
	seller, gate, provider := ssx(t)
	m := open(t, "embedded: false\nproviders:\n"+provider+"products:\n"+traffic("sx", "dyn_sx", ", provisioning: sync")+
		traffic("sx", "dyn_sx_later", ", provisioning: async"), ssxKey)
	key, agent := m.register("upstream")
	if how := m.deliveries(key); how["dyn_sx"] != "gateway" || how["dyn_sx_later"] != "gateway" {
		t.Errorf("delivered by %v", how)
	}
	var d, later apiclient.Session
	m.must(201, "POST", "/sessions", key, dynamic("dyn_sx", "1")).into(t, &d)
	if d.Status != "active" || !strings.Contains(d.Proxy.FullURL, m.gateway) {
		t.Fatalf("created %+v", d)
	}
	m.must(202, "POST", "/sessions", key, dynamic("dyn_sx_later", "2.5")).into(t, &later)
	within(t, soon, "activation", func() bool { return m.session(key, later.SessionID).Status == "active" })
	sold := seller.Keys()
	if len(sold) != 2 || *sold[0].TrafficCapGB != 1 || *sold[1].TrafficCapGB != 3 {
		t.Fatalf("sold are %+v", sold)
	}
	m.keepsAndRotates(key, d)
	up, down := gate.Bytes("psx_acme", sold[0].Key)
	const check = 2048 // more than a check, which is free to the agent
	if used := m.session(key, d.SessionID).Usage.Traffic; max(up-used.UploadBytes, used.UploadBytes-up, down-used.DownloadBytes, used.DownloadBytes-down) > check {
		t.Errorf("the seller counted %d and %d bytes, we %d and %d", up, down, used.UploadBytes, used.DownloadBytes)
	}
	m.ends(key, d)
	m.must(200, "DELETE", "/sessions/"+later.SessionID, key, "")
	within(t, soon, "the keys are revoked", func() bool { return len(seller.Keys()) == 0 })
	m.stopsAtItsCap(key, "dyn_sx")
	within(t, soon, "the used key is revoked", func() bool { return len(seller.Keys()) == 0 })
	if n := seller.Sales(); n != 3 {
		t.Errorf("%d keys were sold for 3 sessions", n)
	}
	// The seller has recorded a call before the service has its answer. One that took
	// too long is made once more, and then counted again.
	metrics := m.shows(`agentproxy_provider_calls_total{operation="order",provider="sx",result="ok"} 3`,
		"agentproxy_upstream_orders_open 0", "agentproxy_upstream_orders_frozen 0")
	cancelled := regexp.MustCompile(`agentproxy_provider_calls_total\{operation="cancel",provider="sx",result="[a-z_]+"\} (\d+)`)
	calls := 0
	for _, found := range cancelled.FindAllStringSubmatch(metrics, -1) {
		n, _ := strconv.Atoi(found[1])
		calls += n
	}
	if calls < 3 {
		t.Errorf("%d cancellations of 3 are counted:\n%s", calls, strings.Join(cancelled.FindAllString(metrics, -1), "\n"))
	}
	m.noIDs(metrics, agent, d.SessionID, sold[0].ID)
	m.keepsSecret(key, []string{d.SessionID, later.SessionID}, proxyssx.APIKey, "psx_acme", "pak_")
	m.verify()
}

func TestADirectProductGivesTheSellersOwnAddress(t *testing.T) {
	t.Parallel()
	seller, gate, provider := ssx(t)
	m := open(t, "embedded: false\nproviders:\n"+provider+"products:\n"+wholeTraffic("sx", "dyn_direct"), ssxKey)
	key, _ := m.register("upstream")
	if how := m.deliveries(key)["dyn_direct"]; how != "direct" {
		t.Errorf("delivered by %q", how)
	}
	d := m.buy(key, dynamic("dyn_direct", "1"))
	u, err := url.Parse(d.Proxy.FullURL)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	if u.Host != gate.Addr().String() || !strings.HasPrefix(u.User.Username(), "psx_acme-any-us-sid-") || password != seller.Keys()[0].Key {
		t.Errorf("the address is %s", u)
	}
	from := m.exitOf(d.Proxy.HTTPURL)
	if by := m.exitOf(d.Proxy.SOCKS5URL); by != from || !strings.HasPrefix(from, "127.") {
		t.Errorf("the exits are %s and %s", from, by)
	}
	var r apiclient.Rotate
	m.must(200, "POST", "/sessions/"+d.SessionID+"/rotate", key, "").into(t, &r)
	if by := m.exitOf(r.NewProxy.FullURL); by == from {
		t.Errorf("the exit is %s before and after the rotation", by)
	}
	m.must(200, "POST", "/sessions/"+d.SessionID+"/terminate", key, "")
	within(t, soon, "the key is disabled", func() bool { return !seller.Keys()[0].Enabled })
	if _, _, status, err := connect(u, "127.0.0.1:1"); err != nil || status != 407 {
		t.Errorf("the disabled key is answered %d, %v", status, err)
	}
	if ended := m.session(key, d.SessionID); ended.Status != "terminated" || ended.Cost.Held == "0" {
		t.Errorf("before the seller has counted it, the session is %s and holds %s", ended.Status, ended.Cost.Held)
	}
	m.keepsSecret(key, []string{d.SessionID}, proxyssx.APIKey)
	m.verify()
}

// soldForATime buys addresses, sends traffic through each, renews them, and ends them.
// Extended returns how often the seller renewed them.
func (m *sellerService) soldForATime(key, product string, quantity int, gate *upstreamproxy.Proxy, protocol string, extended func() int) (id string) {
	m.t.Helper()
	d := m.buy(key, static(product, quantity))
	if len(d.IPList) != quantity {
		m.t.Fatalf("%d addresses of %d: %+v", len(d.IPList), quantity, d.IPList)
	}
	before := len(gate.Sessions())
	m.carries(key, d)
	accounts := map[string]bool{}
	for _, ip := range d.IPList {
		if !strings.Contains(ip.FullURL, m.gateway) {
			m.t.Errorf("the address of %s is %s, not the gateway's", ip.IP, ip.FullURL)
		}
		if exit := m.exitOf(ip.FullURL); !strings.HasPrefix(exit, "127.") {
			m.t.Errorf("the exit of %s is %s", ip.IP, exit)
		}
		seen := gate.Sessions()
		last := seen[len(seen)-1]
		accounts[last.Account+" "+last.Password] = true
		if last.Protocol != protocol {
			m.t.Errorf("the proxy was reached by %s, want %s", last.Protocol, protocol)
		}
	}
	if n := len(gate.Sessions()) - before; n != len(paths)+quantity || len(accounts) != quantity {
		m.t.Errorf("%d connections came to the seller's proxies, by the accounts %v", n, accounts)
	}
	var check struct{ OK bool }
	if m.must(200, "POST", "/sessions/"+d.SessionID+"/check", key, "").into(m.t, &check); !check.OK {
		m.t.Error("the check fails")
	}
	r, err := m.call(m.t.Context(), "POST", "/sessions/"+d.SessionID+"/renew", key, `{"duration_days":30}`, "Idempotency-Key", "renew-"+d.SessionID)
	if err != nil || r.status != 200 && r.status != 202 {
		m.t.Fatalf("renew: %d %s, %v", r.status, r.body, err)
	}
	within(m.t, soon, "the renewal", func() bool {
		return m.session(key, d.SessionID).ExpiresAt.Equal(d.ExpiresAt.Add(30 * 24 * time.Hour))
	})
	if n := extended(); n != 1 {
		m.t.Errorf("the seller renewed %d times", n)
	}
	m.must(200, "POST", "/sessions/"+d.SessionID+"/renew", key, `{"duration_days":30}`, "Idempotency-Key", "renew-"+d.SessionID)
	if n := extended(); n != 1 {
		m.t.Errorf("a replay renewed again: %d", n)
	}
	m.ends(key, m.session(key, d.SessionID))
	return d.SessionID
}

func TestAddressesOfIPRoyalAreSoldAsOurs(t *testing.T) {
	t.Parallel()
	gate := upstreamproxy.New(t, "iproyal", "u421", "secret421x0")
	gate.Account("u421", "secret421x1", 0)
	seller := iproyal.New(t)
	seller.Answers(iproyal.Shape{Polls: 0, Wrapped: true})
	addrs, port := door(t, gate, "127.0.7.1", "127.0.7.2")
	seller.Deliver(addrs, 0, port)
	residential := upstreamproxy.New(t, "iproyal", "unknown", "nothing")
	secret := filepath.Join(t.TempDir(), "royal.key")
	if err := os.WriteFile(secret, []byte(iproyal.Key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := open(t, fmt.Sprintf("embedded: false\nproviders:\n  - {name: royal, kind: iproyal, base_url: %q, per_second: 1000, "+
		"secrets: {key: {file: %q}, residential_key: {env: ROYAL_RESI}}, options: {gateway: \"%s\"}}\nproducts:\n", seller.URL, secret, residential.Addr())+
		addresses("royal", "sta_royal", iproyal.SKU)+traffic("royal", "dyn_royal", ""), "ROYAL_RESI="+iproyal.ResidentialKey)
	key, _ := m.register("upstream")

	id := m.soldForATime(key, "sta_royal", 2, gate, "socks5", func() (n int) {
		for _, o := range seller.Orders() {
			n += o.Extended
		}
		return n
	})
	if o := seller.Orders(); len(o) != 1 || o[0].AutoExtend || o[0].Quantity != 2 || seller.Sales() != 2 {
		t.Errorf("sold are %+v in %d sales", o, seller.Sales())
	}

	d := m.buy(key, dynamic("dyn_royal", "0.5"))
	users := seller.SubUsers()
	if len(users) != 1 || users[0].Available != 500_000_000 {
		t.Fatalf("the sub-users are %+v", users)
	}
	residential.Account(users[0].User, users[0].Password, users[0].Available)
	m.keepsAndRotates(key, d)
	m.ends(key, d)
	within(t, soon, "the sub-user is deleted", func() bool { return len(seller.SubUsers()) == 0 })
	m.keepsSecret(key, []string{id, d.SessionID}, iproyal.Key, iproyal.ResidentialKey, "secret421x", "u421", users[0].Password)
	m.verify()
}

func TestAddressesOfProxySellerAreSoldAsOurs(t *testing.T) {
	t.Parallel()
	gate := upstreamproxy.New(t, "iproyal", "user1", "pass1")
	seller := proxyseller.New(t)
	seller.SetDelay(0)
	seller.SetProxy("127.0.0.1", gate.Addr().Port(), 0)
	traffics := proxyseller.New(t)
	resi := upstreamproxy.New(t, "proxyseller", fmt.Sprintf("%016x", 0x3c8aa1d4000+1), "AZT62Dx1")
	m := open(t, fmt.Sprintf("embedded: false\nproviders:\n"+
		"  - {name: ps, kind: proxyseller, base_url: %q, per_second: 1000, secrets: {key: {env: PS_KEY}}, options: {purpose: tests}}\n"+
		"  - {name: psr, kind: proxyseller, base_url: %q, per_second: 1000, secrets: {key: {env: PS_KEY}}, options: {section: resident, host: 127.0.0.1, port: %d}}\nproducts:\n",
		seller.Base(), traffics.Base(), resi.Addr().Port())+addresses("ps", "sta_ps", "")+traffic("psr", "dyn_ps", ""), "PS_KEY="+proxyseller.Key)
	key, _ := m.register("upstream")
	id := m.soldForATime(key, "sta_ps", 1, gate, "connect", seller.Renewals)
	if n := seller.Orders(); n != 1 || seller.SelfRenewing() != 0 {
		t.Errorf("%d orders, %d addresses renew themselves", n, seller.SelfRenewing())
	}
	d := m.buy(key, dynamic("dyn_ps", "0.5"))
	m.keepsAndRotates(key, d)
	m.ends(key, d)
	within(t, soon, "the package is deleted", func() bool { return len(traffics.Refs()) == 0 })
	m.keepsSecret(key, []string{id, d.SessionID}, proxyseller.Key, url.PathEscape(proxyseller.Key), url.QueryEscape(proxyseller.Key), "pass1", "AZT62Dx1", "3c8aa1d4001")
	m.verify()
}

// An address that is blocked is replaced by one call: of a list at once, of a seller when it has done so, with the same
// user name and password.
func TestSellersReplaceAddresses(t *testing.T) {
	t.Parallel()
	gate := upstreamproxy.New(t, "iproyal", "user1", "pass1")
	gate.Account("user2", "pass2", 0)
	seller := proxyseller.New(t)
	seller.SetDelay(0)
	seller.SetProxy("127.0.0.1", gate.Addr().Port(), 0)
	m := open(t, fmt.Sprintf("embedded: false\nproviders:\n"+
		"  - {name: ps, kind: proxyseller, base_url: %q, per_second: 1000, secrets: {key: {env: PS_KEY}}, options: {purpose: tests}}\n"+
		"  - {name: own, kind: list, options: {file: %q, sold_as: static}}\nproducts:\n",
		seller.Base(), writeList(t, exitsOf(t, 2)...))+addresses("ps", "sta_ps", "")+addresses("own", "sta_own", ""), "PS_KEY="+proxyseller.Key)
	key, _ := m.register("upstream")
	for _, product := range []string{"sta_own", "sta_ps"} {
		d := m.buy(key, static(product, 1))
		was := d.IPList[0]
		call := "/sessions/" + d.SessionID + "/ips/" + was.IP + "/replace"
		var try struct {
			Cost   json.Number
			Ground string
		}
		within(t, soon, "the other address of "+product+" is known to work", func() bool {
			r, err := m.call(t.Context(), "POST", call+"?dry_run=true", key, `{"reason":"blocked"}`)
			r.into(t, &try)
			return err == nil && r.status == 200
		})
		if try.Cost != "0" || try.Ground != "offered" {
			t.Errorf("%s: a dry run: %+v", product, try)
		}
		if r, err := m.call(t.Context(), "POST", call, key, `{"reason":"blocked"}`); err != nil || r.status != 200 && r.status != 202 {
			t.Fatalf("%s: %d %s, %v", product, r.status, r.body, err)
		}
		within(t, soon, product+" has another address", func() bool {
			m.must(200, "GET", "/sessions/"+d.SessionID, key, "").into(t, &d)
			return d.IPList[0].IP != was.IP
		})
		if is := d.IPList[0]; is.Username != was.Username || is.Password != was.Password {
			t.Errorf("%s: the credential changed", product)
		}
		m.carries(key, d)
		m.must(409, "POST", "/sessions/"+d.SessionID+"/ips/"+d.IPList[0].IP+"/replace", key, `{"reason":"blocked"}`)
	}
	m.keepsSecret(key, nil, proxyseller.Key)
	m.verify()
}

func TestAddressesOfProxyCheapAreSoldAsOurs(t *testing.T) {
	t.Parallel()
	gate := upstreamproxy.New(t, "iproyal", "pcu1410379", "pcsecret1410379")
	gate.Account("pcu1410380", "pcsecret1410380", 0)
	seller := proxycheap.New(t)
	seller.Answers(proxycheap.Shape{Polls: 0})
	addrs, port := door(t, gate, "127.0.8.1", "127.0.8.2")
	seller.Deliver(addrs, port, 0)
	m := open(t, cheap(seller), cheapEnv...)
	key, _ := m.register("upstream")
	id := m.soldForATime(key, "sta_cheap", 2, gate, "connect", func() int {
		o := seller.Orders()
		if a, b := o[0].Proxies[0].Extended, o[0].Proxies[1].Extended; a == b {
			return a
		}
		return -1
	})
	if o := seller.Orders(); len(o) != 1 || o[0].Renews || seller.Sales() != 1+2 {
		t.Errorf("sold are %+v in %d sales", o, seller.Sales())
	}
	m.keepsSecret(key, []string{id}, proxycheap.Key, proxycheap.Secret, proxycheap.CallbackSecret, "pcsecret", "pcu14")
	m.verify()
}

// cheap returns the configuration of a seller that sends callbacks.
func cheap(s *proxycheap.Seller) string {
	return fmt.Sprintf("embedded: false\nproviders:\n  - {name: cheap, kind: proxycheap, base_url: %q, per_second: 1000, options: {balance_unit: dollars}, "+
		"secrets: {key: {env: CHEAP_KEY}, secret: {env: CHEAP_SECRET}, callback_secret: {env: CHEAP_CALLBACK}}}\nproducts:\n", s.URL) +
		addresses("cheap", "sta_cheap", proxycheap.Plan)
}

var cheapEnv = []string{"CHEAP_KEY=" + proxycheap.Key, "CHEAP_SECRET=" + proxycheap.Secret, "CHEAP_CALLBACK=" + proxycheap.CallbackSecret}
