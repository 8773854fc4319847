package e2e_test

import (
	"net/url"
	"strings"
	"testing"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/fake/proxyssx"
	"agentproxy/test/fake/upstreamproxy"
)

// Refusals of a seller's proxy are answered with the gateway's codes. The session's
// events have the seller's own reason, without its credential.
func TestRefusalsOfUpstreamProxiesAreReadable(t *testing.T) {
	t.Parallel()
	seller, gate, provider := ssx(t)
	socks := strings.Replace(strings.Replace(provider, "name: sx", "name: sxs", 1), "username: psx_acme", "username: psx_acme, protocol: socks5", 1)
	m := open(t, "embedded: false\nproviders:\n"+provider+socks+"products:\n"+traffic("sx", "dyn_sx", "")+traffic("sxs", "dyn_sxs", ""), ssxKey)
	key, _ := m.register("upstream")
	byHTTP, bySOCKS := m.buy(key, dynamic("dyn_sx", "1")), m.buy(key, dynamic("dyn_sxs", "1"))
	target := listenSilently(t)
	for _, c := range []struct {
		fault        upstreamproxy.Fault
		status       int
		code, reason string
		overSOCKS    string // the code there: the reply has less detail
	}{
		{upstreamproxy.Unauthorized, 502, "UPSTREAM_AUTH", "407 Proxy Authentication Required; E_AUTH_INVALID: as the test wants it", "UPSTREAM_AUTH"},
		{upstreamproxy.Exhausted, 502, "UPSTREAM_PAYMENT", "E_CAP_EXCEEDED: as the test wants it", "UPSTREAM_AUTH"},
		{upstreamproxy.Unfunded, 502, "UPSTREAM_PAYMENT", "E_BALANCE_EXHAUSTED: as the test wants it", "UPSTREAM_AUTH"},
		{upstreamproxy.PaymentRequired, 502, "UPSTREAM_PAYMENT", "402 Payment Required", "UPSTREAM_REFUSED"},
		{upstreamproxy.Forbidden, 403, "UPSTREAM_REFUSED", "403 Forbidden; E_SSRF_BLOCKED", "UPSTREAM_REFUSED"},
		{upstreamproxy.TooMany, 503, "UPSTREAM_BUSY", "429 Too Many Requests; E_RATE_LIMITED_CONN", "UPSTREAM_FAILED"},
		{upstreamproxy.Failed, 502, "UPSTREAM_FAILED", "502 Bad Gateway; E_STOCK_DEGRADED", "UPSTREAM_FAILED"},
		{upstreamproxy.Unavailable, 502, "UPSTREAM_FAILED", "503 Service Unavailable; E_INTERNAL", "UPSTREAM_FAILED"},
		{upstreamproxy.NoStock, 502, "UPSTREAM_FAILED", "502 Bad Gateway; E_NO_STOCK_COUNTRY", "TARGET_UNREACHABLE"},
		{upstreamproxy.Garbage, 502, "UPSTREAM_FAILED", "does not begin with an HTTP/1.x status line", "UPSTREAM_FAILED"},
		{upstreamproxy.Drop, 502, "UPSTREAM_FAILED", "", "UPSTREAM_FAILED"},
	} {
		for _, by := range []struct {
			name string
			apiclient.Session
			status       int
			code, reason string
		}{{"HTTP", byHTTP, c.status, c.code, c.reason}, {"SOCKS5", bySOCKS, 0, c.overSOCKS, ""}} {
			seen := len(m.events(key, by.SessionID))
			gate.Fail(c.fault)
			u, _ := url.Parse(by.Proxy.HTTPURL)
			_, _, status, err := connect(u, target)
			if err != nil || status == 200 || by.status != 0 && status != by.status {
				t.Errorf("%s by %s: %d, %v; want %d", c.fault, by.name, status, err, by.status)
			}
			var e feedEvent
			within(t, soon, "the event of "+string(c.fault), func() bool {
				list := m.events(key, by.SessionID)
				if len(list) > seen {
					e = list[0]
				}
				return len(list) > seen
			})
			if e.Source != "gateway" || e.Code != by.code || !strings.Contains(e.HowToFix, by.reason) {
				t.Errorf("%s by %s: the event is %+v; want %s with %q", c.fault, by.name, e, by.code, by.reason)
			}
		}
	}
	// It works again as soon as the seller does, and refusals were free.
	m.exitOf(byHTTP.Proxy.HTTPURL)
	if d := m.session(key, bySOCKS.SessionID); d.Usage.Traffic.UsedBytes != 0 {
		t.Errorf("refusals were charged: %+v", d.Usage)
	}
	ids := []string{byHTTP.SessionID, bySOCKS.SessionID}
	m.keepsSecret(key, ids, proxyssx.APIKey, "psx_acme", "pak_")
	for _, id := range ids {
		m.must(200, "POST", "/sessions/"+id+"/terminate", key, "")
	}
	within(t, soon, "the keys are revoked", func() bool { return len(seller.Keys()) == 0 })
	m.verify()
}
