package gateway_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"agentproxy/adapters/gateway/socks5"
	"agentproxy/domain/policy"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// deny compiles rules of a session.
func deny(t testing.TB, rules ...string) *policy.Rules {
	t.Helper()
	o := policy.Own{Mode: policy.Enforce, Deny: rules}
	if err := o.Check(""); err != nil {
		t.Fatal(err)
	}
	return o.Compile()
}

// shared is an operator's policy that a test replaces.
type shared struct{ atomic.Pointer[policy.Shared] }

// guarded starts a gateway whose operator denies what matches rules.
func guarded(t *testing.T, names resolver, rules ...string) (*world, *shared) {
	t.Helper()
	s := &shared{}
	s.Store(&policy.Shared{Operator: deny(t, rules...)})
	w := begin(t, newCore(t), func(c *setup) {
		c.Policy = s.Load
		c.Resolver = names
		c.Timing.Linger = patience
	})
	return w, s
}

// refused sends CONNECT and returns the status and the body of the answer.
func (w *world) refused(id, target string) (int, map[string]string) {
	w.t.Helper()
	c := w.dial()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, target, basic(user(id, 0), password(id)))
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
	if err != nil {
		w.t.Fatal(err)
	}
	if res.StatusCode == http.StatusOK {
		return res.StatusCode, nil
	}
	defer res.Body.Close()
	var body map[string]string
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, body
}

// port returns the port of an address.
func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// What is denied is refused before anything is dialled, by every protocol and spelling.
func TestDeniedTargetsAreNotDialled(t *testing.T) {
	t.Parallel()
	target := newCounting(t)
	at := target.addr()
	p := port(at)
	blocked := listen(t)
	w, _ := guarded(t, resolver{"bad.test": {"127.0.0.1"}, "www.worse.test": {"127.0.0.1"}, "worse.test": {"127.0.0.1"},
		"inside.test": {"127.0.0.9"}, "good.test": {"127.0.0.1"}, "mixed.test": {"127.0.0.1", "127.0.0.9"}},
		"bad.test", ".worse.test", "127.0.0.8/29", port(blocked.Addr().String()))
	id := w.add(1, 0)
	for _, host := range []string{"bad.test", "BAD.Test", "bad.test.", "worse.test", "www.worse.test", "WWW.WORSE.TEST.",
		"inside.test", "mixed.test", "127.0.0.9", "[::ffff:127.0.0.9]"} {
		if status, body := w.refused(id, host+":"+p); status != 403 || body["code"] != "TARGET_DENIED" || body["layer"] != "operator" || body["rule"] != "" {
			t.Errorf("CONNECT %s: %d %v", host, status, body)
		}
		if reply := w.socksReply(id, host, p); reply != byte(socks5.NotAllowed) {
			t.Errorf("SOCKS5 %s: reply %d", host, reply)
		}
		res, err := w.client(id).Get("http://" + host + ":" + p + "/")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != 403 || !strings.Contains(res.Status, "TARGET_DENIED: the operator") {
			t.Errorf("GET %s: %s", host, res.Status)
		}
	}
	for target, part := range map[string]string{blocked.Addr().String(): "port", "bad.test:" + p: "host", "inside.test:" + p: "address"} {
		status, body := w.refused(id, target)
		message, fix := fmt.Sprint(body["message"]), fmt.Sprint(body["how_to_fix"])
		if status != 403 || body["code"] != "TARGET_DENIED" || !strings.HasSuffix(message, " by its "+part) || !strings.HasSuffix(fix, "the "+part+" is denied") {
			t.Errorf("a denied %s: %d %v", part, status, body)
		}
	}
	if n := target.accepted.Load(); n != 0 {
		t.Errorf("the target was dialled %d times", n)
	}
	if status, _ := w.refused(id, "good.test:"+p); status != 200 {
		t.Errorf("an allowed name: %d", status)
	}
	o := w.noted(1)[0]
	if o.Type != "refused" || o.Code != "TARGET_DENIED" || o.StatusCode != 403 || o.Host != "bad.test" || o.Retryable || o.Evidence != "" {
		t.Errorf("the feed has %+v", o)
	}
}

// socksReply asks for a target by name or address and returns the reply.
func (w *world) socksReply(id, host, port string) byte {
	w.t.Helper()
	c := w.dial()
	name, pass := user(id, 0), password(id)
	_, _ = c.Write([]byte{5, 1, 2})
	_, _ = c.Write(append(append(append([]byte{1, byte(len(name))}, name...), byte(len(pass))), pass...))
	var n uint16
	_, _ = fmt.Sscan(port, &n)
	request := []byte{5, 1, 0, 3, byte(len(host))}
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && addr.Is4() {
		request = append([]byte{5, 1, 0, 1}, addr.AsSlice()...)
	} else if err == nil {
		b := addr.As16()
		request = append([]byte{5, 1, 0, 4}, b[:]...)
	} else {
		request = append(request, host...)
	}
	_, _ = c.Write(append(request, byte(n>>8), byte(n)))
	var answer [2 + 2 + 2]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		w.t.Fatal(err)
	}
	return answer[5]
}

// Behind an upstream proxy the same is checked, and the proxy is not asked.
func TestDeniedTargetsAreNotSentUpstream(t *testing.T) {
	t.Parallel()
	w, s := guarded(t, resolver{"bad.test": {"127.0.0.1"}, "inside.test": {"127.0.0.9"}, "good.test": {"127.0.0.1"}}, "bad.test", "127.0.0.9")
	target := echo(t)
	for _, protocol := range []session.Protocol{session.HTTP, session.SOCKS5} {
		seller := newSeller(t, "u", "p")
		id := w.add(map[session.Protocol]int{session.HTTP: 1, session.SOCKS5: 2}[protocol], 0)
		w.via(id, seller.endpoint(protocol))
		for _, host := range []string{"bad.test", "inside.test", "127.0.0.9"} {
			if status, body := w.refused(id, host+":"+port(target)); status != 403 || body["code"] != "TARGET_DENIED" {
				t.Errorf("%s: %d %v", host, status, body)
			}
		}
		if asked, _ := seller.targets(); len(asked) != 0 {
			t.Errorf("the provider was asked for %v", asked)
		}
		if status, _ := w.refused(id, "good.test:"+port(target)); status != 200 {
			t.Errorf("an allowed name: %d", status)
		}
	}
	_ = s
}

// An address that a denied name resolved to is denied for ten minutes, as long as the name is.
func TestTheAddressOfADeniedNameIsDenied(t *testing.T) {
	t.Parallel()
	target := echo(t)
	w, s := guarded(t, resolver{"bad.test": {"127.0.0.1"}}, "bad.test")
	id := w.add(1, 0)
	if status, _ := w.refused(id, target); status != 200 {
		t.Fatalf("before the name was used: %d", status)
	}
	if status, _ := w.refused(id, "bad.test:"+port(target)); status != 403 {
		t.Fatalf("the name: %d", status)
	}
	for _, at := range []string{target, "[::ffff:127.0.0.1]:" + port(target)} {
		if status, body := w.refused(id, at); status != 403 || body["layer"] != "operator" {
			t.Errorf("the address %s: %d %v", at, status, body)
		}
	}
	s.Store(&policy.Shared{Operator: deny(t, "other.test")})
	if status, _ := w.refused(id, target); status != 200 {
		t.Errorf("after the rule was removed: %d", status)
	}
}

// The rule is named when it is the session's own, and only that session has it.
func TestTheSessionsOwnPolicy(t *testing.T) {
	t.Parallel()
	target := echo(t)
	w, s := guarded(t, resolver{"www.mine.test": {"127.0.0.1"}, "bad.test": {"127.0.0.1"}}, "bad.test")
	s.Store(&policy.Shared{Operator: s.Load().Operator, Products: map[string]*policy.Rules{"dyn": deny(t, "bought.test")}})
	id, other := w.add(1, 0), w.add(2, 0)
	w.change(id, func(r *traffic.Route) { r.Policy, r.ProductNo = deny(t, ".mine.test", "bad.test"), "dyn" })
	for host, want := range map[string][2]string{"www.mine.test": {"session", ".mine.test"}, "bad.test": {"operator", ""}, "bought.test": {"product", ""}} {
		if status, body := w.refused(id, host+":"+port(target)); status != 403 || body["layer"] != want[0] || body["rule"] != want[1] {
			t.Errorf("%s: %d %v, want %v", host, status, body, want)
		}
	}
	if status, _ := w.refused(other, "www.mine.test:"+port(target)); status != 200 {
		t.Errorf("another session: %d", status)
	}
}

// Report lets everything pass, and records once what would be refused.
func TestReport(t *testing.T) {
	t.Parallel()
	target := echo(t)
	w, _ := guarded(t, resolver{"mine.test": {"127.0.0.1"}}, "bad.test")
	id := w.add(1, 0)
	w.change(id, func(r *traffic.Route) { r.Policy, r.PolicyReports = deny(t, "mine.test", "127.0.0.1"), true })
	w.connect(id, "mine.test:"+port(target))
	w.connect(id, target)
	w.noted(2)
	for _, o := range w.observed("tunnel") {
		if o.Type != "would_refuse" || o.Code != "TARGET_DENIED" || o.StatusCode != 0 {
			t.Errorf("%+v", o)
		}
	}
	if n := len(w.observed("tunnel")); n != 2 {
		t.Errorf("%d are recorded, want 2", n)
	}
}

// Open tunnels and responses under way are cut when their target becomes denied, and others
// go on.
func TestOpenTunnelsToWhatBecomesDeniedAreCut(t *testing.T) {
	t.Parallel()
	target := echo(t)
	slow := listen(t)
	go serve(slow, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx")
		_, _ = io.Copy(io.Discard, c)
	})
	names := resolver{"a.test": {"127.0.0.1"}, "b.test": {"127.0.0.1"}}
	for claim, change := range map[string]func(*testing.T, *world, *shared, string){
		"by the operator's name": func(t *testing.T, _ *world, s *shared, _ string) {
			s.Store(&policy.Shared{Operator: deny(t, "a.test")})
		},
		"by the session's name": func(t *testing.T, w *world, _ *shared, id string) { w.own(id, deny(t, "a.test")) },
		"by the session's port": func(t *testing.T, w *world, _ *shared, id string) {
			w.own(id, deny(t, port(target), port(slow.Addr().String())))
		},
		"by an address": func(t *testing.T, _ *world, s *shared, _ string) {
			s.Store(&policy.Shared{Operator: deny(t, "127.0.0.1")})
		},
	} {
		t.Run(claim, func(t *testing.T) {
			w, s := guarded(t, names, "bad.test")
			id := w.add(1, 0)
			denied, other := w.connect(id, "a.test:"+port(target)), w.connect(id, "b.test:"+port(target))
			res, err := w.client(id).Get("http://a.test:" + port(slow.Addr().String()) + "/")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			change(t, w, s, id)
			if _, err := io.ReadAll(denied); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("the tunnel: %v", err)
			}
			if _, err := io.ReadAll(res.Body); err == nil {
				t.Error("the response is complete")
			}
			waitFor(t, "the tunnel in the feed", func() bool {
				for _, o := range w.observed() {
					if o.Type == "tunnel" && o.Host == "a.test" && o.Code == "TARGET_DENIED" {
						return true
					}
				}
				return false
			})
			if strings.HasSuffix(claim, "name") {
				_, _ = other.Write([]byte("ping"))
				if _, err := io.ReadFull(other, make([]byte, 4)); err != nil {
					t.Errorf("the other tunnel: %v", err)
				}
			}
		})
	}
}

// own gives a session a policy, as a change of it does.
func (w *world) own(id string, rules *policy.Rules) {
	w.change(id, func(r *traffic.Route) { r.Policy = rules })
	w.Changed(id)
}

// A kept connection to a target is not used after a change of the rules.
func TestKeptConnectionsAreJudgedAgain(t *testing.T) {
	t.Parallel()
	l := listen(t)
	go serve(l, func(c net.Conn) {
		for r := bufio.NewReader(c); ; {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	w, s := guarded(t, resolver{"a.test": {"127.0.0.1"}}, "bad.test")
	id := w.add(1, 0)
	client := w.client(id)
	get := func() int {
		res, err := client.Get("http://a.test:" + port(l.Addr().String()) + "/")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		return res.StatusCode
	}
	for range 2 { // the second time on a kept connection
		if status := get(); status != 200 {
			t.Fatalf("it is refused at first: %d", status)
		}
	}
	s.Store(&policy.Shared{Operator: deny(t, "127.0.0.1")})
	if status := get(); status != 403 {
		t.Errorf("after the change: %d", status)
	}
}

// onTrial returns the rules for accounts on trial with ports.
func onTrial(t *testing.T, ports ...string) *policy.Rules {
	t.Helper()
	var b policy.Builder
	for _, p := range ports {
		if err := b.Port(p); err != nil {
			t.Fatal(err)
		}
	}
	return b.Rules()
}

// Accounts on trial reach the ports of the web by default, by every protocol, and others all. What a reload closes is cut.
func TestPortsOfAccountsOnTrial(t *testing.T) {
	t.Parallel()
	s := &shared{}
	s.Store(&policy.Shared{Operator: deny(t, "2222"), Trial: onTrial(t, policy.TrialPorts...)})
	w, _ := metered(t, newCore(t), func(c *setup) {
		c.Policy, c.Timing.Linger = s.Load, patience
		c.Resolver = resolver{"shop.test": {"127.0.0.1"}}
	})
	trial, funded, target := w.of("agt_1", true, 1), w.of("agt_2", false, 2), echo(t)
	// Ports that were open to accounts on trial, mail submission among them.
	for _, port := range []string{"21", "26", "111", "135", "139", "389", "873", "1433", "2375", "2525", "3306", "5060", "5432", "5555",
		"5900", "5985", "6379", "9200", "10250", "11211", "27017", "81", "8444"} {
		status, body := w.refused(trial, "shop.test:"+port)
		if status != 403 || body["code"] != "TARGET_DENIED" || body["layer"] != "trial" || body["rule"] != "" ||
			!strings.HasSuffix(body["message"], "none of 80, 443, 8080, 8443") {
			t.Errorf("port %s: %d %v", port, status, body)
		}
	}
	if reply := w.socksReply(trial, "shop.test", "2525"); reply != byte(socks5.NotAllowed) {
		t.Errorf("SOCKS5: reply %d", reply)
	}
	res, err := w.client(trial).Get("http://" + target + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 403 || !strings.Contains(res.Status, "TARGET_DENIED: an account on trial") {
		t.Errorf("plain HTTP: %s", res.Status)
	}
	if _, body := w.refused(trial, "shop.test:2222"); body["layer"] != "operator" {
		t.Errorf("a port that the operator denies: %v", body)
	}
	for n, port := range policy.TrialPorts { // of which none has a target here
		if status := w.status(trial, fmt.Sprintf("127.0.9.%d:%s", 1+n, port)); status == 403 {
			t.Errorf("port %s is denied", port)
		}
	}
	own := w.connect(funded, target)
	s.Store(&policy.Shared{Trial: onTrial(t, "443", port(target))})
	c := w.connect(trial, target)
	if err := ping(c); err != nil {
		t.Fatal(err)
	}
	s.Store(&policy.Shared{Trial: onTrial(t, "443")})
	if _, err := io.ReadFull(c, make([]byte, 1)); err == nil {
		t.Error("a tunnel to a port that was closed goes on")
	}
	w.change(trial, func(r *traffic.Route) { r.Trial = false })
	w.Changed(trial)
	waitFor(t, "a port after the trial", func() bool { return w.status(trial, target) == 200 })
	if err := ping(own); err != nil {
		t.Errorf("a tunnel of an account with own money: %v", err)
	}
	for _, o := range w.observed("tunnel", "failed") {
		if o.Code != "TARGET_DENIED" || o.Retryable || o.Evidence != "" {
			t.Errorf("the feed has %+v", o)
		}
	}
}
