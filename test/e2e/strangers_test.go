package e2e_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/freeport"
)

// crowded starts the program with 1,024 file descriptors, outside development mode.
func crowded(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, dir: t.TempDir(), api: freeport.Address(t), gateway: freeport.Address(t), admin: freeport.Address(t),
		env: []string{"AGENTPROXY_DEV=false", "AGENTPROXY_ALLOW_NETWORKS=127.0.0.0/8", "AGENTPROXY_TARGET_RATE_PER_MINUTE_TRIAL=0",
			"AGENTPROXY_CONNECTIONS_PER_SECOND_TRIAL=0", "AGENTPROXY_TRIAL_PORTS=all"},
		wrap: func(cmd *exec.Cmd) {
			cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `ulimit -n 1024; exec "$0" serve`, program}
		}}
	s.start()
	t.Cleanup(s.stop)
	return s
}

// customer registers an agent and returns its key and the proxy of a session.
func (s *service) customer(name string) (key string, proxy *url.URL) {
	s.t.Helper()
	key, _ = s.register(name)
	var d apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"session_type":"dynamic","product_no":"dyn_fast_1"}`).into(s.t, &d)
	proxy, err := url.Parse(d.Proxy.HTTPURL)
	if err != nil {
		s.t.Fatal(err)
	}
	return key, proxy
}

// listens is a target that accepts connections and sends nothing.
func listens(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c); _ = c.Close() }()
		}
	}()
	return l.Addr().String()
}

// 1,100 strangers that only wait, on either port, leave API and gateway answering a customer
// who makes a new connection for each request. Where they take the descriptors no answer comes. The
// time is shown and not checked, since other processes use this machine too.
func TestIdleStrangersLeaveAPIAndGateway(t *testing.T) {
	t.Parallel()
	s := crowded(t)
	key, proxy := s.customer("customer")
	target := listens(t)
	tunnel := func() error {
		for deadline := time.Now().Add(soon); ; {
			c, _, status, err := connect(proxy, target)
			if err != nil {
				return err
			}
			_ = c.Close()
			switch {
			case status == http.StatusOK:
				return nil
			case status != http.StatusServiceUnavailable || time.Now().After(deadline): // 503: this machine has much to do
				return fmt.Errorf("status %d", status)
			}
		}
	}
	api := func() error {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: soon}
		req, err := http.NewRequest("GET", "http://"+s.api+"/v1/billing/balance", nil)
		if err != nil {
			return err
		}
		req.Header.Set("X-API-Key", key)
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", res.StatusCode)
		}
		return nil
	}
	// median is of the answers of API and gateway.
	median := func(when string) time.Duration {
		var took []time.Duration
		for range 10 {
			began := time.Now()
			if err := api(); err != nil {
				t.Errorf("%s the API: %v", when, err)
			}
			if err := tunnel(); err != nil {
				t.Errorf("%s the gateway: %v", when, err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	quiet := median("before")
	for _, c := range []struct{ name, addr, send string }{
		{"silent ones at the gateway", s.gateway, ""},
		{"kept ones at the API", s.api, "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{"silent ones at the API", s.api, ""},
	} {
		var strangers []net.Conn
		for range 1100 {
			conn, err := net.DialTimeout("tcp", c.addr, soon)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			strangers = append(strangers, conn)
			_, _ = io.WriteString(conn, c.send)
		}
		t.Logf("among %s an answer of both takes %v, before %v", c.name, median("among "+c.name), quiet)
		for _, conn := range strangers {
			_ = conn.Close()
		}
	}
	if out := s.log.String(); strings.Contains(out, "too many open files") {
		t.Errorf("descriptors ran out:\n%.2000s", out)
	}
}

// One free account does not take the descriptors of the others.
func TestOneAccountLeavesTunnelsForOthers(t *testing.T) {
	t.Parallel()
	s := crowded(t)
	target := listens(t)
	_, thief := s.customer("thief")
	held := 0
	for ; held < 256; held++ {
		c, _, status, err := connect(thief, target)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if status != http.StatusOK {
			break
		}
	}
	if held != 88 { // trials together have a quarter of 352 places
		t.Errorf("a trial holds %d tunnels, want 88", held)
	}
	_, other := s.customer("other")
	if c, _, status, err := connect(other, target); err != nil || status != http.StatusOK {
		t.Errorf("another account: %d, %v", status, err)
	} else {
		_ = c.Close()
	}
}

// A scan is refused by the ports of trials and the limit of targets, and ends the account that makes it.
func TestAScanEndsTheAccount(t *testing.T) {
	t.Parallel()
	s := serve(t, "AGENTPROXY_DEV=false", "AGENTPROXY_ALLOW_NETWORKS=127.0.0.0/8", "AGENTPROXY_TARGETS_PER_MINUTE_TRIAL=5")
	key, proxy := s.customer("scanner")
	tries := func(proxy *url.URL, number, port int) (statuses map[int]int) {
		statuses = map[int]int{}
		for n := range number {
			c, _, status, err := connect(proxy, fmt.Sprintf("127.1.%d.%d:%d", n/200, 1+n%200, port))
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
			statuses[status]++
		}
		return statuses
	}
	if got := tries(proxy, 5, 6379); got[http.StatusForbidden] != 5 {
		t.Errorf("a port of a database: %v", got)
	}
	if got := tries(proxy, 25, 80); got[http.StatusTooManyRequests] == 0 || got[http.StatusBadGateway] < 5 {
		t.Errorf("25 addresses: %v", got)
	}
	s.must(200, "GET", "/billing/balance", key, "")
	s.stop()
	s.env = append(s.env, "AGENTPROXY_CONNECTIONS_PER_SECOND_TRIAL=0", "AGENTPROXY_TARGETS_PER_MINUTE_TRIAL=0")
	s.start()
	tries(proxy, 310, 80)
	within(t, soon, "the account to be disabled", func() bool {
		r, err := s.call(t.Context(), "GET", "/billing/balance", key, "")
		return err == nil && r.status == http.StatusForbidden
	})
	out, err := s.run("audit", "list")
	if err != nil || !strings.Contains(out, "agent disable") || !strings.Contains(out, "scan: of 300 targets in 10 minutes 300 refused or failed") {
		t.Errorf("%v\n%s", err, out)
	}
}

// An agent cannot reach the service through its own exits, to register anew from another
// address for example, by listener, by public address or by name.
func TestTheServiceIsNoTarget(t *testing.T) {
	t.Parallel()
	public := freeport.Address(t)
	_, port, _ := net.SplitHostPort(public)
	s := serve(t, "AGENTPROXY_DEV=false", "AGENTPROXY_ALLOW_NETWORKS=127.0.0.0/8", "AGENTPROXY_PUBLIC_URL=http://localhost:"+port,
		"AGENTPROXY_PUBLIC_GATEWAY=127.0.0.50:24990", "AGENTPROXY_TRIAL_PORTS=all")
	_, proxy := s.customer("farmer")
	proxy.Host = s.gateway
	for _, target := range []string{s.api, s.gateway, s.admin, "localhost:" + port, "LOCALHOST.:" + port, "127.0.0.50:24990",
		"[::ffff:127.0.0.50]:24990"} {
		c, _, status, err := connect(proxy, target)
		if err != nil || status != http.StatusForbidden {
			t.Errorf("CONNECT %s: %d, %v; want 403", target, status, err)
		}
		if c != nil {
			_ = c.Close()
		}
	}
	if c, _, status, err := connect(proxy, listens(t)); err != nil || status != http.StatusOK {
		t.Errorf("another target: %d, %v", status, err)
	} else {
		_ = c.Close()
	}
}

// exitsOutsideDevelopment returns the variable of declared exits for a program outside development mode,
// where nothing else is sold.
func exitsOutsideDevelopment(env []string) []string {
	if !slices.Contains(env, "AGENTPROXY_DEV=false") {
		return nil
	}
	return []string{"AGENTPROXY_EXITS=127.0.0.2@US,127.0.0.3@US,127.0.0.4@DE,127.0.0.5@DE,127.0.0.6@US,127.0.0.7@US"}
}
