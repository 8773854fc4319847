package e2e_test

import (
	"encoding/json"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
)

// denial is the body of a refused CONNECT.
type denial struct{ Code, Layer, Rule string }

// connects sends CONNECT and returns the status and, of a refusal, the body.
func connects(t *testing.T, proxy *url.URL, target string) (int, denial) {
	t.Helper()
	c, r, status, err := connect(proxy, target)
	if err != nil {
		t.Fatalf("CONNECT %s: %v", target, err)
	}
	defer c.Close()
	var d denial
	if status != 200 {
		if err := json.NewDecoder(r).Decode(&d); err != nil {
			t.Fatalf("CONNECT %s: %v", target, err)
		}
	}
	return status, d
}

// silent is a target that sends nothing. It returns its port.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func TestTheOperatorsPolicyIsReloaded(t *testing.T) {
	t.Parallel()
	s, rewrite := configured(t, "trial_days: 3\n")
	s.start()
	t.Cleanup(s.stop)
	key, _ := s.register("an agent")
	id := s.dynamic(key, "1")
	proxy, port, other := s.proxyAt(key, id), silent(t), silent(t)
	hangup := func(logged string) {
		t.Helper()
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.logs(logged)
	}
	for target, want := range map[string]denial{
		"127.0.0.1:22":      {"TARGET_DENIED", "operator", ""},
		"localhost:6665":    {"TARGET_DENIED", "operator", ""},
		"localhost:" + port: {},
		"127.0.0.1:" + port: {},
	} {
		if status, got := connects(t, proxy, target); got != want || (status == 403) != (want.Code != "") {
			t.Errorf("CONNECT %s: %d %+v, want %+v", target, status, got, want)
		}
	}
	open, kept := tunnel(t, proxy, "127.0.0.1:"+port), tunnel(t, proxy, "127.0.0.1:"+other)

	rewrite("trial_days: 3\npolicy: {deny: [LocalHost., 127.0.0.7, " + port + "]}\n")
	hangup("the products were reloaded")
	for _, target := range []string{"localhost:" + other, "LOCALHOST.:" + other, "127.0.0.7:" + other, "127.0.0.1:" + port, "127.0.0.1:22"} {
		if status, got := connects(t, proxy, target); status != 403 || got != (denial{"TARGET_DENIED", "operator", ""}) {
			t.Errorf("after the reload CONNECT %s: %d %+v", target, status, got)
		}
	}
	if status, _ := through(t, proxy.String(), "http://localhost:"+other+"/"); status != 403 {
		t.Errorf("GET of a denied name: %d", status)
	}
	s.promised(time.Second, "the tunnel to the denied port is cut", open)
	if kept() {
		t.Error("another tunnel was cut")
	}
	// localhost is denied, so what it resolved to is.
	if status, _ := connects(t, proxy, "127.0.0.1:"+other); status != 403 {
		t.Errorf("the address of the denied name: %d", status)
	}
	s.promised(2*time.Second, "the refusal in the feed", func() bool {
		for _, e := range s.events(key, id) {
			if e.Code == "TARGET_DENIED" && e.HowToFix != "" {
				return true
			}
		}
		return false
	})

	rewrite("trial_days: 3\npolicy: {deny: ['*.example.com']}\n")
	hangup(`has a wildcard`)
	if status, _ := connects(t, proxy, "127.0.0.7:"+other); status != 403 {
		t.Errorf("after a faulty reload a denied address: %d", status)
	}
	rewrite("trial_days: 3\n")
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	within(t, soon, "the rule is gone", func() bool {
		status, _ := connects(t, proxy, "127.0.0.1:"+port)
		return status == 200
	})
}

// setPolicy changes the policy of a session.
func (s *service) setPolicy(key, id, body string) {
	s.must(200, "PUT", "/sessions/"+id+"/policy", key, body)
}

func TestASessionsPolicy(t *testing.T) {
	t.Parallel()
	s := shared(t)
	key, _ := s.register("an agent")
	var d apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1"},"policy":{"deny":["LOCALHOST"]}}`).into(t, &d)
	other := s.dynamic(key, "1")
	proxy, port := s.proxyAt(key, d.SessionID), silent(t)
	want := denial{"TARGET_DENIED", "session", "localhost"}
	if status, got := connects(t, proxy, "localhost.:"+port); status != 403 || got != want {
		t.Errorf("by the policy of the create call: %d %+v, want %+v", status, got, want)
	}
	if status, _ := connects(t, proxy, "127.0.0.1:"+port); status != 403 {
		t.Errorf("the address of the denied name: %d", status)
	}
	if status, _ := connects(t, s.proxyAt(key, other), "localhost:"+port); status != 200 {
		t.Errorf("another session: %d", status)
	}

	s.setPolicy(key, d.SessionID, `{"mode":"off"}`)
	s.promised(time.Second, "the policy is off", func() bool {
		status, _ := connects(t, proxy, "127.0.0.1:"+port)
		return status == 200
	})
	open := tunnel(t, proxy, "127.0.0.1:"+port)
	s.setPolicy(key, d.SessionID, `{"allow":["443"]}`)
	s.promised(time.Second, "the open tunnel is cut", open)
	want.Rule = "allow"
	if status, got := connects(t, proxy, "127.0.0.1:"+port); status != 403 || got != want {
		t.Errorf("beside allow: %d %+v, want %+v", status, got, want)
	}

	s.setPolicy(key, d.SessionID, `{"mode":"report","deny":["127.0.0.0/8"]}`)
	s.promised(time.Second, "the policy reports", func() bool {
		status, _ := connects(t, proxy, "127.0.0.1:"+port)
		return status == 200
	})
	s.promised(2*time.Second, "the report", func() bool {
		for _, e := range s.events(key, d.SessionID) {
			if e.Type == "would_refuse" && e.Code == "TARGET_DENIED" && strings.Contains(e.HowToFix, "127.0.0.0/8") {
				return true
			}
		}
		return false
	})
}

// A change at one replica holds at the other within a second, for new and open tunnels.
func TestAPolicyHoldsOnEveryReplica(t *testing.T) {
	t.Parallel()
	both := sharedReplicas(t)
	key, _ := both[0].register("replicas")
	id := both[0].dynamic(key, "1")
	proxy, port := both[1].proxyAt(key, id), silent(t)
	open := tunnel(t, proxy, "127.0.0.1:"+port)
	both[0].setPolicy(key, id, `{"deny":["127.0.0.1"]}`)
	both[1].promised(time.Second, "the other replica refuses and cuts", func() bool {
		status, got := connects(t, proxy, "127.0.0.1:"+port)
		return status == 403 && got == (denial{"TARGET_DENIED", "session", "127.0.0.1"}) && open()
	})
	both[1].setPolicy(key, id, `{"mode":"off"}`)
	both[0].promised(time.Second, "the first replica lets it pass again", func() bool {
		status, _ := connects(t, both[0].proxyAt(key, id), "127.0.0.1:"+port)
		return status == 200
	})
}
