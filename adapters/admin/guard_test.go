package admin_test

import (
	"net/http"
	"testing"

	"agentproxy/adapters/admin"
)

func TestForeignHostsAndPagesAreRefused(t *testing.T) {
	s, _ := begin(t, admin.Config{Pprof: true, Hosts: []string{"replica-1"}}, discard)
	for _, c := range []struct {
		path, host, site string
		want             int
	}{
		{"/metrics", "", "", 200},
		{"/metrics", "localhost:8082", "", 200},
		{"/metrics", "replica-1:8082", "none", 200},
		{"/metrics", "rebind.attacker.example", "", 421},
		{"/debug/pprof/cmdline", "rebind.attacker.example", "", 421},
		{"/debug/pprof/goroutine?debug=1", "replica-2", "", 421},
		{"/healthz", "192.0.2.1", "", 421},
		{"/metrics", "127.0.0.1:22172.evil.example", "", 421},
		{"/sign-in", "rebind.attacker.example", "", 421},
		{"/debug/pprof/cmdline", "localhost", "cross-site", 403},
	} {
		req, err := http.NewRequest("GET", "http://"+s.Addr().String()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		req.Header.Set("Sec-Fetch-Site", c.site)
		req.Header.Set("Authorization", "Bearer "+token)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != c.want {
			t.Errorf("%s of %q from %q: %d, want %d", c.path, c.host, c.site, res.StatusCode, c.want)
		}
	}
}
