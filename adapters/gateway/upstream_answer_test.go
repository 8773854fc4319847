package gateway_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/session"
	"agentproxy/test/freeport"
	"agentproxy/test/syncbuffer"
)

// refusedOver requests a tunnel that is refused, and returns the answer and the
// recorded event.
func (w *world) refusedOver(t *testing.T, id, target string) (res *http.Response, howToFix, feed string) {
	t.Helper()
	seen := len(w.observed())
	c := w.dial()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, target, basic(user(id, 0), password(id)))
	res, body := response(t, c)
	var shown struct {
		Code     string `json:"code"`
		HowToFix string `json:"how_to_fix"`
	}
	if err := json.Unmarshal([]byte(body), &shown); err != nil {
		t.Fatalf("%d %q: %v", res.StatusCode, body, err)
	}
	all := w.observed()
	if len(all) != seen+1 {
		t.Fatalf("observed %d things, want 1", len(all)-seen)
	}
	o := all[seen]
	if o.Code != shown.Code || o.StatusCode != res.StatusCode || o.HowToFix != shown.HowToFix || o.Type != "failed" || o.SessionID != id {
		t.Errorf("the client got %d %s, the event is %+v", res.StatusCode, shown, o)
	}
	return res, shown.HowToFix, fmt.Sprint(o.Code, " ", o.Evidence, " ", o.Retryable)
}

// Each answer of an upstream becomes a refusal with the provider's reason.
func TestAnswersOfUpstreamsAreMapped(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "u5er-zone", "secret")
	w := begin(t, newCore(t), nil)
	hasty := begin(t, w.fakeCore, func(c *setup) { c.Timing.Connect = 200 * time.Millisecond })
	id := w.add(1, 0)
	w.via(id, s.endpoint(session.HTTP))
	const failed, final = "UPSTREAM_FAILED http_error true", "\r\n\r\n"
	for _, tc := range []struct {
		name, answer string
		status       int
		feed, reason string
	}{
		{"407", "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0" + final, 502, "UPSTREAM_AUTH  false", "407 Proxy Authentication Required"},
		{"a code in the body", "HTTP/1.1 407 No\r\nContent-Length: 44" + final + "E_CAP_EXCEEDED: cap reached (req: 12-34-56)\n", 502, "UPSTREAM_PAYMENT  false",
			"407 No; E_CAP_EXCEEDED: cap reached (req: 12-34-56)"},
		{"a code alone", "HTTP/1.1 407 No\r\nTransfer-Encoding: chunked" + final + "8\r\nTRAFFIC_\r\n9\r\nEXHAUSTED\r\n0\r\n\r\n", 502, "UPSTREAM_PAYMENT  false",
			"407 No; TRAFFIC_EXHAUSTED"},
		{"x-error-description", "HTTP/1.1 407 No\r\nX-Error-Description: Traffic limit reached\r\nContent-Length: 0" + final, 502, "UPSTREAM_PAYMENT  false",
			"407 No; Traffic limit reached"},
		{"threads", "HTTP/1.1 407 THREADS_EXHAUSTED\r\nRetry-After: 7\r\nContent-Length: 0" + final, 503, "UPSTREAM_BUSY  true", "407 THREADS_EXHAUSTED"},
		{"a forbidden target by 402", "HTTP/1.1 402 Residential Failed (bad_endpoint)" + final, 403, "UPSTREAM_REFUSED  false", "402 Residential Failed (bad_endpoint)"},
		{"an address that is not listed", "HTTP/1.1 401 Auth Failed\r\nX-Brd-Err-Code: client_10050\r\nContent-Length: 0" + final, 502, "UPSTREAM_AUTH  false",
			"add this host to the zone's allow list; the provider answered: 401 Auth Failed; client_10050"},
		{"401", "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0" + final, 502, "UPSTREAM_AUTH  false", "401 Unauthorized"},
		{"402", "HTTP/1.1 402 Payment Required" + final, 502, "UPSTREAM_PAYMENT  false", "402 Payment Required"},
		{"403", "HTTP/1.1 403" + final, 403, "UPSTREAM_REFUSED  false", "403 Forbidden"},
		{"Proxy-Status", "HTTP/1.1 403 Forbidden\r\nProxy-Status: brd; error=http_request_denied; details=\"robots\"\r\nContent-Length: 0" + final, 403,
			"UPSTREAM_REFUSED  false", `403 Forbidden; brd; error=http_request_denied; details="robots"`},
		{"x-brd", "HTTP/1.1 502 Bad\r\nX-BRD-Err-Code: client-10060\r\nx-brd-err-msg: no such IP\r\nContent-Length: 0" + final, 502, failed,
			"502 Bad; client-10060; no such IP"},
		{"429", "HTTP/1.1 429 Slow Down\r\nRetry-After: 7" + final, 503, "UPSTREAM_BUSY  true", "429 Slow Down"},
		{"500", "HTTP/1.1 500 Oops\r\nConnection: close" + final + "<html>\nE_NO_RAY: none\n</html>", 502, failed, "500 Oops; E_NO_RAY: none"},
		{"502", "HTTP/1.0 502 Bad Gateway" + final, 502, failed, "502 Bad Gateway"},
		{"504", "HTTP/1.1 504 Gateway Timeout" + final, 504, "UPSTREAM_TIMEOUT timeout true", "504 Gateway Timeout"},
		{"599", "HTTP/1.1 599 x" + final, 502, failed, "599 x"},
		{"a redirect", "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0" + final, 502, failed, "302 Found"},
		{"400", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0" + final, 502, failed, "400 Bad Request"},
		{"after interim answers", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 16) + "HTTP/1.1 402 Pay" + final, 502, "UPSTREAM_PAYMENT  false", "402 Pay"},
		{"characters from afar", "HTTP/1.1 403 Nein \xff\xe2\x82\xac\t!\r\nContent-Length: 0" + final, 403, "UPSTREAM_REFUSED  false", "403 Nein    !"},
		{"nothing but interim answers", strings.Repeat("HTTP/1.1 102 x\r\n\r\n", 17), 502, failed, ""},
		{"101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade" + final, 502, failed, ""},
		{"garbage", "SSH-2.0-OpenSSH_9.2\r\n\r\n", 502, failed, ""}, // in our words alone
		{"bytes", "\x00\x01\x02\n\n", 502, failed, ""},
		{"HTTP/2", "HTTP/2 200 OK" + final, 502, failed, ""},
		{"a long head", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 16<<10) + final, 502, failed, ""},
		{"a head without end", strings.Repeat("X: y\r\n", 1<<20), 502, failed, ""},
		{"a broken field", "HTTP/1.1 200 OK\r\nno colon" + final, 502, failed, ""},
		{"half a head", "HTTP/1.1 200 OK\r\nX: y\r\n", 502, failed, ""},
		{"nothing", "", 502, failed, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.answers(writes("%s", tc.answer))
			res, howToFix, feed := w.refusedOver(t, id, "127.0.0.1:80")
			if res.StatusCode != tc.status || feed != tc.feed || !strings.HasSuffix(howToFix, tc.reason) || (tc.reason != "") != strings.Contains(howToFix, "the provider answered: ") {
				t.Errorf("%d, %s, %q", res.StatusCode, feed, howToFix)
			}
			if tc.status == 503 && res.Header.Get("Retry-After") != "7" {
				t.Errorf("Retry-After: %s", res.Header.Get("Retry-After"))
			}
		})
	}
	t.Run("silence", func(t *testing.T) {
		for _, said := range []string{"", "HTTP/1.1 2"} {
			s.answers(func(c net.Conn) { fmt.Fprint(c, said); _, _ = io.Copy(io.Discard, c) })
			if res, _, feed := hasty.refusedOver(t, id, "127.0.0.1:80"); res.StatusCode != 504 || feed != "UPSTREAM_TIMEOUT timeout true" {
				t.Errorf("after %q: %d, %s", said, res.StatusCode, feed)
			}
		}
	})
	t.Run("a closed port", func(t *testing.T) {
		unreachable := s.endpoint(session.HTTP)
		unreachable.Port = netip.MustParseAddrPort(freeport.Address(t)).Port()
		w.via(id, unreachable)
		w.Changed(id)
		if res, _, feed := w.refusedOver(t, id, "127.0.0.1:80"); res.StatusCode != 502 || feed != "UPSTREAM_UNREACHABLE http_error true" {
			t.Errorf("%d, %s", res.StatusCode, feed)
		}
	})
}

// A refusal does not wait for a body that never comes.
func TestARefusalWithoutItsBodyIsOne(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "u", "secret")
	s.answers(silent("HTTP/1.1 402 Pay\r\nContent-Length: 100\r\n\r\nE_PAY: n"))
	w := begin(t, newCore(t), func(c *setup) { c.Timing.Connect = time.Hour })
	id := w.add(1, 0)
	w.via(id, s.endpoint(session.HTTP))
	if _, howToFix, feed := w.refusedOver(t, id, "127.0.0.1:80"); feed != "UPSTREAM_PAYMENT  false" || !strings.HasSuffix(howToFix, "402 Pay") {
		t.Errorf("%s, %q", feed, howToFix)
	}
}

// A 2xx opens the tunnel, whatever length it claims to have.
func TestAnyTwoHundredOpensTheTunnel(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "", "")
	w := begin(t, newCore(t), nil)
	for n, head := range []string{"HTTP/1.0 200 Connection established\r\nProxy-agent: x\r\n\r\n", "HTTP/1.1 204\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "HTTP/1.1 299 \nTransfer-Encoding: chunked\n\n", "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"} {
		s.answers(func(c net.Conn) { fmt.Fprint(c, head, "banner") })
		id := w.add(n, 0)
		w.via(id, s.endpoint(""))
		if got, err := io.ReadAll(w.connect(id, "127.0.0.1:80")); err != nil || string(got) != "banner" {
			t.Errorf("%q: %q, %v", head, got, err)
		}
	}
}

func TestRepliesOfSOCKSUpstreamsAreMapped(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "u5er-zone", "secret")
	w := begin(t, newCore(t), nil)
	hasty := begin(t, w.fakeCore, func(c *setup) { c.Timing.Connect = 200 * time.Millisecond })
	id := w.add(1, 0)
	w.via(id, s.endpoint(session.SOCKS5))
	for _, tc := range []struct {
		reply        string
		status       int
		feed, reason string
	}{
		{"\x05\x01\x00\x01\x00\x00\x00\x00\x00\x00", 502, "UPSTREAM_FAILED http_error true", "SOCKS5 reply 1: general failure"},
		{"\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00", 403, "UPSTREAM_REFUSED  false", "SOCKS5 reply 2: not allowed by ruleset"},
		{"\x05\x03", 502, "UPSTREAM_FAILED http_error true", ""}, // cut short
		{"\x05\x03\x00\x01", 502, "TARGET_UNREACHABLE http_error true", "SOCKS5 reply 3: network unreachable"},
		{"\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00", 502, "TARGET_UNREACHABLE http_error true", "SOCKS5 reply 4: host unreachable"},
		{"\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00", 502, "TARGET_UNREACHABLE http_error true", "SOCKS5 reply 5: connection refused"},
		{"\x05\x06\x00\x01\x00\x00\x00\x00\x00\x00", 504, "UPSTREAM_TIMEOUT timeout true", "SOCKS5 reply 6: TTL expired"},
		{"\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00", 502, "UPSTREAM_FAILED http_error true", "SOCKS5 reply 7: command not supported"},
		{"\x05\xf9\x00\x01\x00\x00\x00\x00\x00\x00", 502, "UPSTREAM_FAILED http_error true", "SOCKS5 reply 249: unassigned"},
		{"\x04\x00\x00\x01\x00\x00\x00\x00\x00\x00", 502, "UPSTREAM_FAILED http_error true", ""},
		{"\x05\x00\x00\x02\x00\x00\x00\x00\x00\x00", 502, "UPSTREAM_FAILED http_error true", ""},
		{"HTTP/1.1 200 OK\r\n\r\n", 502, "UPSTREAM_FAILED http_error true", ""},
		{"", 502, "UPSTREAM_FAILED http_error true", ""},
	} {
		s.replies(writes("%s", tc.reply))
		res, howToFix, feed := w.refusedOver(t, id, "127.0.0.1:80")
		if res.StatusCode != tc.status || feed != tc.feed || !strings.HasSuffix(howToFix, tc.reason) {
			t.Errorf("%q: %d, %s, %q", tc.reply, res.StatusCode, feed, howToFix)
		}
	}
	s.replies(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	if res, _, feed := hasty.refusedOver(t, id, "127.0.0.1:80"); res.StatusCode != 504 || feed != "UPSTREAM_TIMEOUT timeout true" {
		t.Errorf("silence: %d, %s", res.StatusCode, feed)
	}
	for n, edit := range []func(user, password *string){
		func(_, p *string) { *p = "wrong" },
		func(u, p *string) { *u, *p = "", "" },                         // none is offered, one is wanted
		func(u, _ *string) { *u = strings.Repeat("u", 256) },           // cannot be sent
		func(_, p *string) { *p = strings.Repeat("secret", 50)[:256] }, // cannot be sent
	} {
		proxy := s.endpoint(session.SOCKS5)
		edit(&proxy.User, &proxy.Password)
		id := w.add(10+n, 0)
		w.via(id, proxy)
		if res, _, feed := w.refusedOver(t, id, "127.0.0.1:80"); res.StatusCode != 502 || feed != "UPSTREAM_AUTH  false" {
			t.Errorf("credential %d: %d, %s", n, res.StatusCode, feed)
		}
	}
}

// A client of SOCKS5 gets the nearest reply, one of plain HTTP our answer and
// never its proxy's 407.
func TestOtherProtocolsShowTheReason(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "u", "secret")
	w, r := metered(t, newCore(t), nil)
	id := w.add(1, 0)
	w.via(id, s.endpoint(session.HTTP))
	for n, tc := range []struct {
		answer        string
		plain         int
		socks, series string
	}{
		{"407 No", 502, "general SOCKS server failure", "upstream_auth"},
		{"402 No", 502, "general SOCKS server failure", "upstream_payment"},
		{"403 No", 403, "connection not allowed by ruleset", "upstream_refused"},
		{"429 No", 503, "general SOCKS server failure", "upstream_busy"},
		{"500 No", 502, "general SOCKS server failure", "upstream_failed"},
		{"504 No", 504, "TTL expired", "upstream_timeout"},
	} {
		s.answers(writes("HTTP/1.1 %s\r\n\r\n", tc.answer))
		if _, err := w.socks(user(id, 0), password(id)).Dial("tcp", "127.0.0.1:80"); err == nil || !strings.HasSuffix(err.Error(), tc.socks) {
			t.Errorf("%s: %v", tc.answer, err)
		}
		c := w.dial()
		fmt.Fprintf(c, "GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n%s\r\n", basic(user(id, 0), password(id)))
		if res, body := response(t, c); res.StatusCode != tc.plain || res.Header.Get("Proxy-Authenticate") != "" {
			t.Errorf("%s: %d %s", tc.answer, res.StatusCode, body)
		}
		got := scrape(t, r)
		for _, p := range []string{"socks5", "http"} {
			if got.requests(p)[tc.series] != 1 || len(got.requests(p)) != n+1 {
				t.Errorf("%s: %v", tc.answer, got.requests(p))
			}
		}
	}
	if u := w.settled(id); u.Used() != 0 {
		t.Errorf("refusals are charged: %+v", u)
	}
	s.answers(nil)
	w.connect(id, echo(t))
	if n := scrape(t, r)["agentproxy_gateway_dial_seconds"].Histogram.GetSampleCount(); n != 1 {
		t.Errorf("%d dials timed, want the one that succeeded", n)
	}
}

// A provider may repeat the service's credential in its answers. It is neither sent
// to clients nor recorded, and the provider's texts are not logged.
func TestCredentialsOfUpstreamsAreNeverDisclosed(t *testing.T) {
	t.Parallel()
	const name, secret = "Acct7-cc-US+x", "Pa55 w/rd%"
	both := base64.StdEncoding.EncodeToString([]byte(name + ":" + secret))
	s := newSeller(t, name, secret)
	logged := &syncbuffer.Buffer{}
	w := begin(t, newCore(t), func(c *setup) {
		c.Log = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	id := w.add(1, 0)
	w.via(id, s.endpoint(session.HTTP))
	for _, answer := range []string{
		"HTTP/1.1 407 who is " + name + " with " + secret + "\r\n\r\n",
		"HTTP/1.1 407 No\r\nProxy-Status: x; details=\"" + strings.ToLower(name) + "/" + strings.ToUpper(secret) + "\"\r\n\r\n",
		"HTTP/1.1 407 No\r\nx-brd-err-msg: Basic " + both + "\r\n\r\n",
		"HTTP/1.1 407 No\r\nx-brd-err-code: Acct7-cc-US%2Bx Pa55%20w%2Frd%25 Pa55+w%2Frd%25\r\n\r\n",
		"HTTP/1.1 407 No\r\n\r\nE_AUTH: " + name + ":" + secret + "\n",
		"HTTP/1.1 407 No\r\n\r\nE_AUTH: " + strings.Repeat("-", 240) + name + secret + "\n",
		"HTTP/1.1 407 No\r\n\r\n" + strings.Repeat("x", 150) + "\nE_AUTH: " + strings.Repeat("-", 90) + name + "\n",
		"HTTP/1.1 407 " + strings.Repeat("-", 190) + name + secret + "\r\n\r\n",
		"HTTP/1.1 407 No\r\n\r\nE_AUTH: " + name + "\xff" + secret + "\n",
	} {
		s.answers(writes("%s", answer))
		res, howToFix, _ := w.refusedOver(t, id, "127.0.0.1:80")
		_, reason, _ := strings.Cut(howToFix, "the provider answered: ")
		if len(reason) > 200 || !strings.HasPrefix(reason, "407 ") || !strings.Contains(reason, "[hid") && !strings.Contains(reason, "---") {
			t.Errorf("%q: got %q", answer, reason)
		}
		everything := strings.ToLower(fmt.Sprint(res.Header, howToFix, w.observed()))
		for _, part := range []string{name, "acct7", "us%2bx", secret, "pa55", "rd%", both, both[:12]} {
			if strings.Contains(everything, strings.ToLower(part)) {
				t.Errorf("%q: %q is repeated in %q", answer, part, howToFix)
			}
		}
	}
	if text := logged.String(); !strings.Contains(text, "UPSTREAM_AUTH") || strings.Contains(text, "E_AUTH") ||
		strings.Contains(strings.ToLower(text), "acct7") || strings.Contains(strings.ToLower(text), "pa55") {
		t.Errorf("logged:\n%s", text)
	}
}
