package e2e_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
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
	s.verify()
}
