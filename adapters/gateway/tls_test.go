package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// What holds without TLS holds inside it. Each part runs with a shim that uses TLS between its clients and its
// gateways.
func TestInsideTLS(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"TunnelCarriesBothWays": TestTunnelCarriesBothWays, "EarlyBytesBelongToTheTunnel": TestEarlyBytesBelongToTheTunnel,
		"MetersToTheByte": TestMetersToTheByte, "HalfClose": TestHalfClose, "IdleTunnelIsCut": TestIdleTunnelIsCut,
		"SlowReader": TestSlowReader, "Resets": TestResets, "TerminateCuts": TestTerminateCuts,
		"Forward": TestForward, "ForwardMetersTheClientsWire": TestForwardMetersTheClientsWire,
		"RefusedRequestsAreFree": TestRefusedRequestsAreFree, "ExpectContinue": TestExpectContinue,
		"Upgrade": TestUpgrade, "StaleUpstream": TestStaleUpstream, "UpstreamsAreNotShared": TestUpstreamsAreNotShared,
		"TargetFailures": TestTargetFailures, "AMalformedChunk": TestAMalformedChunkIsTheClientsFault,
		"SOCKS5": TestSOCKS5, "SOCKS5Refusals": TestSOCKS5Refusals, "HTTPThroughSOCKS5": TestHTTPThroughSOCKS5,
		"SOCKSTakesWords": TestSOCKSTakesWords,
		"Credentials":     TestCredentials, "SessionStates": TestSessionStates, "AuthFailureLimit": TestAuthFailureLimit,
		"NothingRunsBehindARefusedConnect": TestNothingRunsBehindARefusedConnect, "HeadLimits": TestHeadLimits,
		"SpecialAddresses":     TestSpecialAddresses,
		"LimitIsNeverExceeded": TestLimitIsNeverExceeded, "LimitHalfCloses": TestLimitHalfCloses,
		"StalledTunnelKeepsItsBytes": TestStalledTunnelKeepsItsBytes, "Outage": TestOutage, "LostLease": TestLostLease,
		"IdleGivesBack": TestIdleGivesBack, "TunnelLimit": TestTunnelLimit, "Chaos": TestChaos,
		"APlainDownloadEndsAtTheLimit": TestAPlainDownloadEndsAtTheLimit,
		"StrangersMakeRoom":            TestStrangersMakeRoom, "OneAddressHasAShare": TestOneAddressHasAShare,
		"AnAgentHasAShare": TestAnAgentHasAShare, "QuietTunnelsMakeRoom": TestQuietTunnelsMakeRoom,
		"StopDrains": TestStopDrains, "APanicEndsOneConnection": TestAPanicEndsOneConnection,
		"DeniedTargetsAreNotDialled":  TestDeniedTargetsAreNotDialled,
		"OpenTunnelsToWhatBecomes":    TestOpenTunnelsToWhatBecomesDeniedAreCut,
		"KeptConnectionsAreJudged":    TestKeptConnectionsAreJudgedAgain,
		"WorkersAddUp":                TestWorkersAddUpToTheSession,
		"ARemovedWorkerIsCut":         TestARemovedWorkerIsCut,
		"TheTunnelsOfAWorker":         TestTheTunnelsOfAWorker,
		"TrafficGoesThroughUpstreams": TestTrafficGoesThroughTheUpstream,
		"EarlyBytesOfTheTarget":       TestEarlyBytesOfTheTargetReachTheClient,
		"EarlyBytesKeepToTheLimit":    TestEarlyBytesKeepToTheLimit,
		"ReadAndNotForwarded":         TestWhatIsReadAndNotForwardedIsCharged,
	} {
		t.Run(name, test)
	}
}

// The first byte decides, before TLS and inside it, with either version and with the protocol that the client asks for.
func TestTLSOnTheOnePort(t *testing.T) {
	t.Parallel()
	w, r := metered(t, newCore(t), certified)
	id, target := w.add(1, 0), echo(t)
	clear := w.connect(id, target)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, protocol := range []string{"", "http/1.1"} {
			cfg := trusting()
			cfg.MinVersion, cfg.MaxVersion = version, version
			if protocol != "" {
				cfg.NextProtos = []string{protocol}
			}
			c := w.dialTLS(cfg)
			if got := w.connectAs(c, basic(user(id, 0), password(id)), target); got != 200 {
				t.Errorf("CONNECT inside %x %q: %d", version, protocol, got)
			}
			if err := ping(c); err != nil {
				t.Error(err)
			}
			socks := w.dialTLS(cfg)
			greet(t, socks, user(id, 0), password(id))
		}
	}
	if err := ping(clear); err != nil {
		t.Errorf("without TLS: %v", err)
	}
	old := trusting()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	raw := w.dial()
	if err := tls.Client(raw, old).Handshake(); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	inner := w.dialTLS(trusting())
	_, _ = inner.Write([]byte{0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0, '\r', '\n', '\r', '\n'})
	if res, _ := response(t, inner); res.StatusCode != 400 {
		t.Errorf("TLS inside TLS: %d", res.StatusCode)
	}
	s := scrape(t, r)
	if full, failed := s.value("agentproxy_gateway_tls_handshakes_total,outcome=full"),
		s.value("agentproxy_gateway_tls_handshakes_total,outcome=failed"); full != 9 || failed != 1 {
		t.Errorf("%v handshakes and %v failures", full, failed)
	}
}

// greet makes the handshake of SOCKS5 up to the credential.
func greet(t *testing.T, c net.Conn, user, password string) {
	t.Helper()
	_, _ = c.Write([]byte{5, 1, 2})
	b := make([]byte, 2)
	if _, err := io.ReadFull(c, b); err != nil || b[1] != 2 {
		t.Fatalf("% x, %v", b, err)
	}
	_, _ = fmt.Fprintf(c, "\x01%c%s%c%s", len(user), user, len(password), password)
	if _, err := io.ReadFull(c, b); err != nil || b[1] != 0 {
		t.Errorf("% x, %v", b, err)
	}
}

// Without a certificate a client that begins TLS gets an alert, and nothing is in the feed.
func TestNoCertificate(t *testing.T) {
	t.Parallel()
	w, r := metered(t, newCore(t), lingers)
	err := tls.Client(w.dial(), trusting()).Handshake()
	if err == nil || !strings.Contains(err.Error(), "handshake failure") {
		t.Errorf("the handshake: %v", err)
	}
	if n := scrape(t, r).value("agentproxy_gateway_tls_handshakes_total,outcome=no_certificate"); n != 1 {
		t.Errorf("%v are counted", n)
	}
	if o := w.observed(); len(o) != 0 {
		t.Errorf("observed %+v", o)
	}
}

// Where TLS is required, a client without it is refused whatever its credential, and one with it is served.
func TestTLSRequired(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(s *setup) {
		certified(s)
		s.RefusePlaintext, s.AuthFailureLimit = true, 1
		lingers(s)
	})
	id, target := w.add(1, 0), echo(t)
	for _, auth := range []string{"", basic(user(id, 0), "wrong"), basic(user(id, 0), password(id))} {
		c := w.dial()
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, target, auth)
		res, body := response(t, c)
		if res.StatusCode != 426 || res.Header.Get("Upgrade") != "TLS/1.3" || !strings.Contains(body, "TLS_REQUIRED") {
			t.Errorf("%q: %s %v %s", auth, res.Status, res.Header, body)
		}
	}
	c := w.dial()
	_, _ = c.Write([]byte{5, 1, 2})
	if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
		t.Errorf("SOCKS5: % x, %v", b, err)
	}
	if w.routes != 0 || len(w.observed()) != 0 {
		t.Errorf("%d routes were read, observed %+v", w.routes, w.observed())
	}
	inside := w.dialTLS(trusting())
	if got := w.connectAs(inside, basic(user(id, 0), password(id)), target); got != 200 {
		t.Errorf("inside TLS: %d", got)
	}
}

// A ticket of one replica is good at another that has the same secret, and at no other.
func TestReplicasShareTickets(t *testing.T) {
	t.Parallel()
	first, second := begin(t, newCore(t), certified), begin(t, newCore(t), certified)
	stranger := begin(t, newCore(t), func(s *setup) { certified(s); s.TicketSecret = []byte("another") })
	later := begin(t, newCore(t), func(s *setup) {
		certified(s)
		s.Now = func() time.Time { return time.Now().Add(24 * time.Hour) }
	})
	muchLater := begin(t, newCore(t), func(s *setup) {
		certified(s)
		s.Now = func() time.Time { return time.Now().Add(72 * time.Hour) }
	})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		cfg := trusting()
		cfg.MinVersion, cfg.MaxVersion = version, version
		for _, step := range []struct {
			name    string
			w       *world
			resumed bool
		}{{"first", first, false}, {"itself", first, true}, {"another replica", second, true}, {"a day later", later, true},
			{"another secret", stranger, false}, {"three days later", muchLater, false}} {
			cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			w := first
			if step.name != "first" {
				fetchTicket(t, w, cfg)
			}
			c := step.w.dialTLS(cfg)
			if got := c.ConnectionState().DidResume; got != step.resumed {
				t.Errorf("%x at %s: resumed %v", version, step.name, got)
			}
		}
	}
}

// fetchTicket connects until the client has a ticket, which with TLS 1.3 comes behind the handshake.
func fetchTicket(t *testing.T, w *world, cfg *tls.Config) {
	t.Helper()
	c := w.dialTLS(cfg)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// A client that begins TLS and does not go on is closed like one that sends half a head.
func TestSlowHandshakesAreCut(t *testing.T) {
	t.Parallel()
	w, r := metered(t, newCore(t), func(s *setup) { certified(s); s.Timing.Header = 200 * time.Millisecond })
	cut := func() float64 { return scrape(t, r).value("agentproxy_gateway_tls_handshakes_total,outcome=timed_out") }
	for i, begun := range [][]byte{{0x16}, {0x16, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}} {
		waitFor(t, "the handshake to be counted", func() bool { // one that is cut before it begins is not
			c := w.dial()
			_, _ = c.Write(begun)
			if b, err := io.ReadAll(c); len(b) > 0 && b[0] != 0x15 {
				t.Errorf("% x, %v", b, err)
			}
			return cut() > float64(i)
		})
	}
	var secured *tls.Conn
	waitFor(t, "a handshake in time", func() bool {
		secured = tls.Client(w.dial(), trusting())
		return secured.HandshakeContext(t.Context()) == nil
	})
	if _, err := secured.Read(make([]byte, 1)); err == nil {
		t.Error("a client that sends nothing inside TLS is served")
	}
}

// The same requests cost the same bytes with and without TLS.
func TestTwinsCostTheSame(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), certified)
	target := newCounting(t)
	site := listen(t)
	go func() {
		_ = http.Serve(site, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			rw.Header()["Date"] = nil
			rw.Header().Set("Content-Length", fmt.Sprint(3*len(b))) // chunks end where a read does
			_, _ = rw.Write(bytes.Repeat(b, 3))
		}))
	}()
	plain, secured := w.add(1, 0), w.add(2, 0)
	dial := map[string]func() net.Conn{
		plain:   func() net.Conn { return w.dial() },
		secured: func() net.Conn { return w.dialTLS(trusting()) },
	}
	for id, dial := range dial {
		for _, n := range []int64{0, 1, 1000, 100_000, 3_000_000} {
			c := dial()
			if got := w.connectAs(c, basic(user(id, 0), password(id)), target.addr()); got != 200 {
				t.Fatal(got)
			}
			swap(t, c, n)
			c = dial()
			greet(t, c, user(id, 0), password(id))
			addr := net.TCPAddr{}
			if a, err := net.ResolveTCPAddr("tcp", target.addr()); err == nil {
				addr = *a
			}
			_, _ = c.Write(append([]byte{5, 1, 0, 1}, append(addr.IP.To4(), byte(addr.Port>>8), byte(addr.Port))...))
			if _, err := io.ReadFull(c, make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			swap(t, c, n)
			body := strings.Repeat("x", int(n))
			c = dial()
			fmt.Fprintf(c, "POST http://%s/ HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n%s\r\n%s", site.Addr(), site.Addr(), n,
				basic(user(id, 0), password(id)), body)
			if res, got := response(t, c); res.StatusCode != 200 || len(got) != 3*int(n) {
				t.Fatalf("%s with %d bytes", res.Status, len(got))
			}
			_ = c.Close()
		}
	}
	a, b := w.settled(plain), w.settled(secured)
	if a.Up != b.Up || a.Down != b.Down || a.Connections != b.Connections || a.Down < 2*3_000_000 {
		t.Errorf("%+v without TLS, %+v with it", a, b)
	}
}

// swap sends n bytes to a counting target, receives as many, and closes.
func swap(t *testing.T, c net.Conn, n int64) {
	t.Helper()
	_, _ = c.Write(order(n, n))
	go func() { _, _ = io.CopyN(c, zeros{}, n) }()
	if got, err := io.CopyN(io.Discard, c, n); err != nil {
		t.Errorf("%d of %d: %v", got, n, err)
	}
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the last byte: %v", err)
	}
	_ = c.Close()
}

// An ordinary client takes an https:// proxy.
func TestAnHTTPSProxyURL(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), certified)
	id := w.add(1, 0)
	site := listen(t)
	go func() {
		_ = http.Serve(site, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, "here") }))
	}()
	proxy := &url.URL{Scheme: "https", Host: w.Addr().String(), User: url.UserPassword(user(id, 0), password(id))}
	tr := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: trusting()}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr, Timeout: patience}).Get("http://" + site.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); string(b) != "here" {
		t.Errorf("%q", b)
	}
}

// Go's net/http asks a proxy for h2 and sends it HTTP/1.1 all the same: the first bytes decide, not what was asked for.
func TestClientsThatAskForHTTP2AndDoWithout(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), certified)
	id := w.add(1, 0)
	site := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "reached") }))
	t.Cleanup(site.Close)
	trust := trusting().RootCAs.Clone()
	trust.AddCert(site.Certificate())
	client := http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: trust},
		Proxy: http.ProxyURL(&url.URL{Scheme: "https", Host: "gateway.test:1", User: url.UserPassword(user(id, 0), password(id))}),
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, w.Addr().String())
		}}}
	defer client.CloseIdleConnections()
	res, err := client.Get(site.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "reached" {
		t.Errorf("%q, %v", body, err)
	}
	c := w.dialTLS(trusting("h2")) // its method begins as the preface of HTTP/2 does
	if _, err := io.WriteString(c, "PRIME / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || answer.StatusCode != 400 {
		t.Errorf("a request that is none for a proxy: %v, %v", answer, err)
	}
	socks := w.dialTLS(trusting("h2"))
	greet(t, socks, user(id, 0), password(id))
}
