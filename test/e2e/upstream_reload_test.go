package e2e_test

import (
	"syscall"
	"testing"

	"agentproxy/test/fake/proxyssx"
)

func TestAHangupChangesWhatIsBoughtOfSellers(t *testing.T) {
	t.Parallel()
	seller, _, provider := ssx(t)
	head := "embedded: false\nproviders:\n" + provider + "products:\n"
	m := open(t, head+traffic("sx", "dyn_sx", ""), ssxKey)
	key, _ := m.register("upstream")
	d := m.buy(key, dynamic("dyn_sx", "1"))
	exit := m.exitOf(d.Proxy.FullURL)
	hangup := func(logged string) {
		t.Helper()
		if err := m.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		m.logs(logged)
	}
	works := func() {
		t.Helper()
		if got := m.session(key, d.SessionID); got.Status != "active" || got.Proxy.FullURL != d.Proxy.FullURL {
			t.Errorf("the session is %+v", got)
		}
		if again := m.exitOf(d.Proxy.FullURL); again != exit {
			t.Errorf("the exit was %s and is %s", exit, again)
		}
	}

	m.rewrite(head + traffic("sx", "dyn_sx", "") + wholeTraffic("sx", "dyn_sx_2"))
	hangup("the products were reloaded")
	if how := m.deliveries(key); len(how) != 2 || how["dyn_sx"] != "gateway" || how["dyn_sx_2"] != "direct" {
		t.Errorf("after the reload: %v", how)
	}
	m.buy(key, dynamic("dyn_sx_2", "1"))
	works()

	m.rewrite(head + traffic("sx", "dyn_sx_3", "") + traffic("unknown", "dyn_sx_4", ""))
	hangup(`no provider is named \"unknown\"`)
	if how := m.deliveries(key); len(how) != 2 || how["dyn_sx_2"] != "direct" {
		t.Errorf("after a faulty reload: %v", how)
	}
	works()

	// A session of a product that is not sold any more goes on, and ends.
	m.rewrite(head + traffic("sx", "dyn_sx_2", ""))
	hangup("the products were reloaded")
	within(t, soon, "the product is gone", func() bool { return len(m.deliveries(key)) == 1 })
	works()
	m.must(200, "POST", "/sessions/"+d.SessionID+"/rotate", key, "")
	m.must(200, "POST", "/sessions/"+d.SessionID+"/terminate", key, "")
	within(t, soon, "its key is revoked", func() bool { return len(seller.Keys()) == 1 })
	m.keepsSecret(key, []string{d.SessionID}, proxyssx.APIKey)
	m.verify()
}
