package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/policy"
	"agentproxy/domain/session"
)

// everywhere is an echo at all addresses of this host. It returns its port.
func everywhere(t *testing.T) (port string) {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go serve(l, func(c net.Conn) { _, _ = io.Copy(c, c) })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// The new connections of an agent to one domain are limited, by whatever protocol and name.
func TestConnectionsToOneDomainArePaced(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
	w, r := metered(t, newCore(t), func(s *setup) {
		s.TargetRate, s.TrialTargetRate = 6, 3
		s.Now = func() time.Time { return clock }
		s.Resolver = resolver{"a.shop.test": {"127.0.0.1"}, "b.shop.test": {"127.0.0.1"}, "other.test": {"127.0.1.1"}}
	})
	port := everywhere(t)
	trial, funded := w.of("agt_1", true, 1), w.of("agt_2", false, 2)
	for _, host := range []string{"a.shop.test", "b.shop.test", "A.Shop.Test"} {
		if got := w.status(trial, host+":"+port); got != 200 {
			t.Fatalf("%s: %d", host, got)
		}
	}
	res, err := w.client(trial).Get("http://b.shop.test:" + port)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 429 || !strings.Contains(res.Status, "TARGET_RATE_LIMITED") || res.Header.Get("Retry-After") != "20" {
		t.Errorf("the fourth: %s, Retry-After %s", res.Status, res.Header.Get("Retry-After"))
	}
	w.over(user(trial, 0), password(trial), "a.shop.test:"+port)
	counted(t, r, "socks5", map[string]int{"target_rate_limited": 1})
	if got := w.status(trial, "other.test:"+port); got != 200 {
		t.Errorf("another domain: %d", got)
	}
	for range 6 {
		if got := w.status(funded, "a.shop.test:"+port); got != 200 {
			t.Errorf("another agent: %d", got)
		}
	}
	if got := w.status(funded, "a.shop.test:"+port); got != 429 {
		t.Errorf("its seventh: %d", got)
	}
	for _, o := range w.observed("tunnel") {
		if o.Code != "TARGET_RATE_LIMITED" || o.Evidence != "" || !o.Retryable {
			t.Errorf("the feed has %+v", o)
		}
	}
}

// Names of one address share the limit to one target on trial, by whatever path, and addresses of one network four
// times as many. Accounts with own money have more of both.
func TestConnectionsToOneAddressArePaced(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
	names := resolver{}
	for n := range 40 {
		names[fmt.Sprintf("h%d.shared%d.test", n, n)] = []string{"127.0.0.1"}
		names[fmt.Sprintf("h%d.near%d.test", n, n)] = []string{fmt.Sprint("127.0.1.", 1+n)}
	}
	b := newCore(t)
	w, r := metered(t, b, func(s *setup) {
		s.TargetRate, s.TrialTargetRate = 3, 3
		s.Now = func() time.Time { return clock }
		s.Resolver = names
	})
	port := everywhere(t)
	seller := newSeller(t, "", "")
	count := func(id, name string) (open int) {
		for n := range 40 {
			if got := w.status(id, fmt.Sprintf("h%d.%s%d.test:%s", n, name, n, port)); got == 200 {
				open++
			} else if got != 429 {
				t.Fatalf("%s: %d", name, got)
			}
		}
		return open
	}
	through := w.of("agt_4", true, 6)
	w.via(through, seller.endpoint(session.HTTP))
	for _, c := range []struct {
		claim, id, name string
		want            int
	}{
		{"one address", w.of("agt_1", true, 1), "shared", 3},
		{"another session of the agent", w.of("agt_1", true, 2), "shared", 0},
		{"one network", w.of("agt_2", true, 3), "near", 12},
		{"one address of own money", w.of("agt_3", false, 4), "shared", 12},
		{"one network of own money", w.of("agt_5", false, 5), "near", 24},
		{"through a seller", through, "shared", 3},
	} {
		if got := count(c.id, c.name); got != c.want {
			t.Errorf("%s: %d connections, want %d", c.claim, got, c.want)
		}
	}
	plain := w.of("agt_6", true, 7)
	for n := range 4 {
		res, err := w.client(plain).Get(fmt.Sprintf("http://h%d.shared%d.test:%s", n, n, port))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if (res.StatusCode == 429) != (n == 3) {
			t.Errorf("plain request %d: %s", n, res.Status)
		}
	}
	if n := scrape(t, r).value("agentproxy_gateway_requests_total,outcome=target_rate_limited,protocol=connect"); n != 40*6-3-12-12-24-3 {
		t.Errorf("%v were refused", n)
	}
}

// New connections of an agent are limited, those that are refused or fail included, and plain requests on kept
// connections are none. The refusal is one of each protocol.
func TestNewConnectionsAreCounted(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
	denied := &policy.Shared{Operator: deny(t, "denied.test")}
	w, r := metered(t, newCore(t), func(s *setup) {
		s.TrialConnectionRate, s.ConnectionRate = 2, 100 // 6 and 1,000 at once
		s.Now = func() time.Time { return clock }
		s.Policy = func() *policy.Shared { return denied }
		s.Resolver = resolver{}
	})
	target := answersOK(t)
	trial := w.of("agt_1", true, 1)
	client := w.client(trial)
	get := func(url string) *http.Response {
		t.Helper()
		res, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		return res
	}
	for range 10 { // of which one is new
		if res := get("http://" + target); res.StatusCode != 200 {
			t.Fatal(res.Status)
		}
	}
	for host, want := range map[string]int{"denied.test:443": 403, "none.test:443": 502, target: 200} {
		if got := w.status(trial, host); got != want {
			t.Errorf("%s: %d, want %d", host, got, want)
		}
	}
	if res := get("http://denied.test/"); res.StatusCode != 403 {
		t.Errorf("a plain request to a denied name: %s", res.Status)
	}
	w.over(user(trial, 0), password(trial), "none.test:80")
	for range 2 {
		w.over(user(trial, 0), password(trial), target)
	}
	counted(t, r, "socks5", map[string]int{"target_unreachable": 1, "connection_rate_limited": 2})
	if got := w.status(trial, target); got != 429 {
		t.Errorf("one more by CONNECT: %d", got)
	}
	res := get("http://denied.test/")
	if res.StatusCode != 429 || !strings.Contains(res.Status, "CONNECTION_RATE_LIMITED: ") || res.Header.Get("Retry-After") != "1" {
		t.Errorf("one more by plain HTTP: %s, Retry-After %s", res.Status, res.Header.Get("Retry-After"))
	}
	funded := w.of("agt_2", false, 2)
	for range 20 {
		if got := w.status(funded, target); got != 200 {
			t.Fatalf("an account with own money: %d", got)
		}
	}
	for _, o := range w.observed("tunnel", "request") {
		if o.Code == "CONNECTION_RATE_LIMITED" && (o.Evidence != "" || !o.Retryable) {
			t.Errorf("the feed has %+v", o)
		}
	}
}

// An agent reaches a number of targets a minute, whether they answer or not.
func TestDistinctTargetsAreCounted(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
	w := begin(t, newCore(t), func(s *setup) {
		s.TrialTargets, s.Targets = 3, 5
		s.Now = func() time.Time { return clock }
		s.Resolver = resolver{"a.shop.test": {"127.0.0.1"}, "b.shop.test": {"127.0.0.1"}}
	})
	port := everywhere(t)
	for _, c := range []struct {
		agent string
		trial bool
		want  int
	}{{"agt_1", true, 3}, {"agt_2", false, 5}} {
		id := w.of(c.agent, c.trial, c.want)
		for n := range 8 {
			if got := w.status(id, fmt.Sprintf("127.0.7.%d:1", n+1)); (got == 502) != (n < c.want) || got != 502 && got != 429 {
				t.Errorf("%s: target %d: %d", c.agent, n, got)
			}
		}
		if got := w.status(id, "a.shop.test:"+port); got != 429 {
			t.Errorf("%s: a name: %d", c.agent, got)
		}
	}
	id := w.of("agt_3", true, 9)
	for _, host := range []string{"a.shop.test", "b.shop.test", "127.0.0.1", "127.0.0.2", "a.shop.test"} {
		if got := w.status(id, host+":"+port); got != 200 {
			t.Errorf("%s: %d", host, got)
		}
	}
	c := w.dial()
	fmt.Fprintf(c, "CONNECT 127.0.0.3:1 HTTP/1.1\r\nHost: x\r\n%s\r\n", basic(user(id, 0), password(id)))
	res, body := response(t, c)
	if res.StatusCode != 429 || res.Header.Get("Retry-After") != "60" || !strings.Contains(body, "too many different targets") {
		t.Errorf("%s, Retry-After %s: %s", res.Status, res.Header.Get("Retry-After"), body)
	}
}

// Each connection is a record, so an agent on trial that had all of its storage makes none; one that paid does.
func TestAnAgentThatStoredAllMakesNoConnections(t *testing.T) {
	t.Parallel()
	w, r := metered(t, newCore(t), func(s *setup) {
		s.StoredAll = func(agentID string) bool { return agentID != "agt_3" }
	})
	port := everywhere(t)
	trial, funded, other := w.of("agt_1", true, 1), w.of("agt_2", false, 2), w.of("agt_3", true, 3)
	res, err := w.client(trial).Get("http://127.0.0.1:" + port)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 429 || !strings.Contains(res.Status, "STORAGE_LIMIT") || res.Header.Get("Retry-After") != "60" {
		t.Errorf("answered %s, Retry-After %s", res.Status, res.Header.Get("Retry-After"))
	}
	w.over(user(trial, 0), password(trial), "127.0.0.1:"+port)
	counted(t, r, "socks5", map[string]int{"storage_limit": 1})
	for _, id := range []string{funded, other} {
		if got := w.status(id, "127.0.0.1:"+port); got != 200 {
			t.Errorf("another agent: %d", got)
		}
	}
}
