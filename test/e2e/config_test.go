package e2e_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/freeport"
)

// configured returns a service that is not started, whose configuration file has a text.
func configured(t *testing.T, text string) (s *service, rewrite func(text string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	rewrite = func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(text)
	return &service{t: t, dir: t.TempDir(), api: freeport.Address(t), gateway: freeport.Address(t), admin: freeport.Address(t),
		env: []string{"AGENTPROXY_CONFIG=" + file, "AGENTPROXY_DEV=true"}}, rewrite
}

const ownProduct = `
products:
  - {code: own_1, name: Own, type: dynamic, price: "0.30", countries: [DE, US], sources: [{provider: embedded}]}
`

func TestAHangupReloadsTheProductsAndNothingElse(t *testing.T) {
	t.Parallel()
	s, rewrite := configured(t, "trial_days: 3\n")
	s.start()
	t.Cleanup(s.stop)
	key, _ := s.register("an agent")
	var before apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":1}}`).into(t, &before)
	sold := func() string { return string(s.must(200, "GET", "/public/products", "", "").body) }
	hangup := func(logged string) {
		t.Helper()
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.logs(logged)
	}

	rewrite("embedded: false\ntrial_days: 3" + ownProduct)
	hangup("the products were reloaded")
	if list := sold(); !strings.Contains(list, `"own_1"`) || strings.Contains(list, `"dyn_fast_1"`) {
		t.Errorf("after the reload the products are %s", list)
	}
	var after apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"own_1","traffic_gb":1,"country":"DE"}}`).into(t, &after)
	if got := s.session(key, before.SessionID); got.Status != "active" || got.Proxy.FullURL != before.Proxy.FullURL {
		t.Errorf("the session from before is %+v", got)
	}
	s.exitOf(before.Proxy.FullURL)
	s.exitOf(after.Proxy.FullURL)

	rewrite("embedded: false\nproducts:\n  - {code: own_2, name: Own, type: dynamic, price: free, sources: [{provider: embedded}]}\n  - {code: own_2}\n")
	hangup("products[1].name: is missing")
	if log := s.log.String(); !strings.Contains(log, "config.yaml:3: products[0].price: must be US dollars") || !strings.Contains(log, "config.yaml:4: products[1].code: duplicate code") {
		t.Errorf("not every fault is logged:\n%s", log)
	}
	if list := sold(); !strings.Contains(list, `"own_1"`) || strings.Contains(list, `"own_2"`) {
		t.Errorf("after a faulty reload the products are %s", list)
	}
	rewrite(ownProduct)
	s.verify()
}

func TestAFaultyFileKeepsTheServiceFromStarting(t *testing.T) {
	t.Parallel()
	s, _ := configured(t, "providers:\n  - {name: x, kind: nothing}"+ownProduct+"  - {code: own_1, name: Own, type: static}\n")
	out, err := s.run("serve")
	for _, line := range []string{"config.yaml:2: providers[0].kind: must be one of", "config.yaml:5: products[1].code: duplicate code: the product on line 4 has it too",
		"config.yaml:5: products[1].durations: is missing", "config.yaml:5: products[1].sources: is missing"} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not among the faults:\n%s", line, out)
		}
	}
	if exit(err) != 1 {
		t.Errorf("serve ended with %v", err)
	}
	if files, _ := filepath.Glob(filepath.Join(s.dir, "*")); len(files) > 0 {
		t.Errorf("it made %v", files)
	}
	if c, err := net.Dial("tcp", s.api); err == nil {
		c.Close()
		t.Error("it listens")
	}
	if out, err := s.run("config", "check"); exit(err) != 1 || !strings.Contains(out, "config.yaml:2: providers[0].kind") {
		t.Errorf("config check: %v\n%s", err, out)
	}
}
