package e2e_test

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentproxy/adapters/apiclient"
)

// Each address of a static session is measured by itself, through that address, and a session with a rule has the exits
// alone that meet it.
func TestExitsAreMeasuredAndHeldToARule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	facts := filepath.Join(dir, "networks.txt")
	ok(t, os.WriteFile(facts, []byte("127.0.0.0/8 country=LT timezone=Europe/Vilnius network_type=hosting\n127.0.0.0/28 network_type=residential\n"), 0o600))
	config := filepath.Join(dir, "config.yaml")
	ok(t, os.WriteFile(config, []byte("exit_facts: [{kind: ranges, file: '"+facts+"'}]\n"), 0o600))
	s := serve(t, "AGENTPROXY_CONFIG="+config)
	key, _ := s.register("measured")
	var static apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"type":"static","config":{"product_no":"sta_isp_1","quantity":2,"duration_days":30,"country":"DE"}}`).into(t, &static)

	const rule = `"require":{"network_types":["residential"]}`
	low := netip.MustParsePrefix("127.0.0.0/28")
	var d apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":1},`+rule+`}`).into(t, &d)
	for range 3 {
		if e := s.exitOf(d.Proxy.FullURL); !low.Contains(netip.MustParseAddr(e)) {
			t.Errorf("a session with a rule leaves by %s", e)
		}
		s.must(200, "POST", "/sessions/"+d.SessionID+"/rotate", key, "")
	}
	var made struct {
		Items []struct {
			ExitIP string `json:"exit_ip"`
		}
	}
	s.must(201, "POST", "/sessions/"+d.SessionID+"/workers", key, `{"count":20}`).into(t, &made)
	for _, w := range made.Items {
		if !low.Contains(netip.MustParseAddr(w.ExitIP)) {
			t.Errorf("a worker has the exit %s", w.ExitIP)
		}
	}
	s.must(409, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":1},"require":{"network_types":["mobile"]}}`)
	s.requiresByApx(low)

	var shown struct {
		IPList []struct {
			IP   string
			Exit *struct {
				IP, Country string
				Agreed      *bool
			}
		} `json:"ip_list"`
	}
	within(t, soon, "both addresses are measured", func() bool {
		s.must(200, "GET", "/sessions/"+static.SessionID, key, "").into(t, &shown)
		return len(shown.IPList) == 2 && shown.IPList[0].Exit != nil && shown.IPList[1].Exit != nil
	})
	for _, a := range shown.IPList {
		if a.Exit.IP != a.IP || a.Exit.Country != "LT" || a.Exit.Agreed == nil || *a.Exit.Agreed {
			text, _ := json.Marshal(a)
			t.Errorf("measured: %s", text)
		}
	}

	// It is elsewhere than sold, so another address comes in its place under the same credential, for nothing.
	s.must(200, "GET", "/sessions/"+static.SessionID, key, "").into(t, &static)
	first, second := static.IPList[0], static.IPList[1]
	proxyOf := func(text string) *url.URL {
		u, err := url.Parse(text)
		ok(t, err)
		return u
	}
	closed, other := tunnel(t, proxyOf(first.FullURL), quiet(t)), tunnel(t, proxyOf(second.FullURL), quiet(t))
	var done apiclient.Replacement
	s.must(200, "POST", "/sessions/"+static.SessionID+"/ips/"+first.IP+"/replace", key, `{"reason":"wrong_place"}`).into(t, &done)
	if done.Status != "done" || done.Ground != "contradicted" || done.NewIP == nil || *done.NewIP == first.IP {
		t.Errorf("the replacement is %+v", done)
	}
	within(t, soon, "the tunnel from the old address is closed", closed)
	if other() {
		t.Error("the tunnel from the other address is closed too")
	}
	if e := s.exitOf(first.FullURL); e != *done.NewIP {
		t.Errorf("the credential leaves by %s, want %s", e, *done.NewIP)
	}
	s.must(409, "POST", "/sessions/"+static.SessionID+"/ips/"+*done.NewIP+"/replace", key, `{"reason":"blocked"}`)
	s.verify()
}

// Sessions and workers of gateways leave by exits that meet their rule: of three sellers, one of them asynchronous. A
// refusal has nothing of the seller's in it, and costs nothing.
func TestExitsOfGatewaysAreHeldToARule(t *testing.T) {
	t.Parallel()
	facts := filepath.Join(t.TempDir(), "networks.txt")
	ok(t, os.WriteFile(facts, []byte("127.128.0.0/9 network_type=residential\n127.128.0.0/11 network_type=hosting\n"), 0o600))
	config, _, env := gated(t)
	m := open(t, config+"exit_facts: [{kind: ranges, file: '"+facts+"'}]\n", env...)
	key, _ := m.register("gated")
	const rule = `"require":{"network_types":["residential"],"attempts":10}`
	bad := netip.MustParsePrefix("127.128.0.0/11") // a quarter of them
	var ids []string
	for _, g := range gates {
		body := dynamic("dyn_"+g.name, "1")
		d := m.buy(key, body[:len(body)-1]+","+rule+"}")
		ids = append(ids, d.SessionID)
		for range 4 {
			if e := m.exitOf(d.Proxy.FullURL); bad.Contains(netip.MustParseAddr(e)) {
				t.Errorf("%s: a session with a rule leaves by %s", g.name, e)
			}
			m.must(200, "POST", "/sessions/"+d.SessionID+"/rotate", key, "")
		}
		var made apiclient.MadeWorkers
		m.must(201, "POST", "/sessions/"+d.SessionID+"/workers", key, `{"count":3}`).into(t, &made)
		for _, w := range made.Items {
			if e := m.exitOf(w.Proxy.FullURL); bad.Contains(netip.MustParseAddr(e)) {
				t.Errorf("%s: a worker with a rule leaves by %s", g.name, e)
			}
		}
		m.ends(key, d)
	}
	other, _ := m.register("refused")
	body := dynamic("dyn_brd", "1")
	m.must(409, "POST", "/sessions", other, body[:len(body)-1]+`,"require":{"network_types":["mobile"]}}`)
	var none struct{ Items []any }
	if m.must(200, "GET", "/sessions", other, "").into(t, &none); len(none.Items) != 0 {
		t.Errorf("a refused purchase left %v", none.Items)
	}
	m.keepsSecret(key, ids, "Secret9brd", "Secret9royal", "Secret9imp", "brd-customer", "hl1-zone", "login1__", "acct1")
	m.verify()
}

// requiresByApx buys, rotates and makes workers by apx with a rule, and configures a browser for what was measured.
func (s *service) requiresByApx(low netip.Prefix) {
	s.t.Helper()
	out, err := s.shell(s.t.TempDir(), `
		apx register >/dev/null
		apx quote dyn_fast_1 --gb 0.1 --require-network residential >/dev/null
		S=$(apx buy dyn_fast_1 --gb 0.1 --max-cost 1 --require-network residential --require-not-in 127.0.0.1/32 | cut -f1)
		echo "exit $(apx rotate $S --require-network residential,isp | cut -f3 | tail -1)"
		apx workers $S --count 3 --require-network residential | cut -f4 | sed 's/^/exit /'
		echo "exit $(apx rotate $S --worker w1 --require-network residential | cut -f4 | tail -1)"
		apx connect $S --client playwright --passport | grep timezoneId
		apx rotate $S --require-network mobile 2>&1 || echo "status $?"
		apx rotate $S --require-max-risk low 2>&1 || echo "status $?"
		apx workers $S --require-network isp 2>&1 || echo "status $?"
		apx rotate $S --require-agreed --require-asn 64500 2>&1 || echo "status $?"`)
	for _, want := range []string{`timezoneId: "Europe/Vilnius"`, "apx: EXIT_QUALITY_NOT_MET", "status 1\napx: misuse: --require-max-risk", "status 2\napx: misuse: --unique",
		"require.asns"} {
		if !strings.Contains(out, want) {
			s.t.Errorf("the answers lack %q", want)
		}
	}
	n := 0
	for line := range strings.Lines(out) {
		if text, is := strings.CutPrefix(strings.TrimSpace(line), "exit "); is && text != "exit" {
			if a, err := netip.ParseAddr(text); err != nil || !low.Contains(a) {
				s.t.Errorf("apx has the exit %q", text)
			}
			n++
		}
	}
	if err != nil || n != 5 || s.t.Failed() {
		s.t.Errorf("%d exits, %v\n%s", n, err, out)
	}
}
