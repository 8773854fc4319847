package http1_test

import (
	"strings"
	"testing"
)

func TestARequestIsRewrittenForItsTarget(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"origin-form and Host from the URI",
			"GET http://a.example:8080/x?y HTTP/1.1|Host: evil.example|Accept: */*",
			"GET /x?y HTTP/1.1|Host: a.example:8080|Accept: */*"},
		{"the default port is not named",
			"GET http://a:80/ HTTP/1.1|Host: a:80", "GET / HTTP/1.1|Host: a"},
		{"an IPv6 address keeps its brackets",
			"GET http://[::1]:81/ HTTP/1.1|Host: x", "GET / HTTP/1.1|Host: [::1]:81"},
		{"an empty path becomes /", "GET http://a HTTP/1.1|Host: a", "GET / HTTP/1.1|Host: a"},
		{"an empty path before a query too", "GET http://a?b HTTP/1.1|Host: a", "GET /?b HTTP/1.1|Host: a"},
		{"OPTIONS of a server has *", "OPTIONS http://a HTTP/1.1|Host: a", "OPTIONS * HTTP/1.1|Host: a"},
		{"OPTIONS of a query has not", "OPTIONS http://a?b HTTP/1.1|Host: a", "OPTIONS /?b HTTP/1.1|Host: a"},
		{"HTTP/1.0 becomes 1.1 with a Host", "GET http://a/ HTTP/1.0|A: b", "GET / HTTP/1.1|Host: a|A: b"},
		{"hop-by-hop fields stop here",
			"GET http://a/ HTTP/1.1|Host: a|Connection: close|Keep-Alive: 5|Proxy-Connection: keep-alive|" +
				"Proxy-Authorization: Basic dTpw|Proxy-Authenticate: x|TE: trailers|Trailer: X|Upgrade: h2c|HTTP2-Settings: x|" +
				"Proxy-Authentication-Info: x|B: c",
			"GET / HTTP/1.1|Host: a|B: c"},
		{"and those that Connection names",
			"GET http://a/ HTTP/1.1|Host: a|X-Foo: 1|Connection: x-foo, , X-BAR|x-bar: 2|X-Baz: 3",
			"GET / HTTP/1.1|Host: a|X-Baz: 3"},
		{"but not what we write ourselves",
			"POST http://a/ HTTP/1.1|Host: a|Content-Length: 3|Expect: 100-continue|Connection: host, content-length, transfer-encoding, expect",
			"POST / HTTP/1.1|Host: a|Content-Length: 3|Expect: 100-continue"},
		{"nor chunked framing",
			"POST http://a/ HTTP/1.1|Host: a|Transfer-Encoding: CHUNKED|Connection: transfer-encoding",
			"POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked"},
		{"equal lengths become one",
			"POST http://a/ HTTP/1.1|Host: a|content-length: 03|Content-Length: 3",
			"POST / HTTP/1.1|Host: a|content-length: 3"},
		{"a length of nothing is kept",
			"POST http://a/ HTTP/1.1|Host: a|Content-Length: 0", "POST / HTTP/1.1|Host: a|Content-Length: 0"},
		{"WebSocket passes",
			"GET http://a/ HTTP/1.1|Host: a|Connection: keep-alive, Upgrade|Upgrade: WebSocket|Sec-WebSocket-Key: k|Connection: x",
			"GET / HTTP/1.1|Host: a|Connection: Upgrade|Upgrade: WebSocket|Sec-WebSocket-Key: k"},
		{"the client's own Via stays, none is added",
			"GET http://a/ HTTP/1.1|Host: a|Via: 1.1 mine", "GET / HTTP/1.1|Host: a|Via: 1.1 mine"},
		{"order and spelling stay",
			"GET http://a/ HTTP/1.1|ACCEPT:x|host: a|cookie:   b  |X:", "GET / HTTP/1.1|ACCEPT:x|host: a|cookie:   b|X:"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			crlf := func(s string) string { return strings.ReplaceAll(s, "|", "\r\n") + "\r\n\r\n" }
			if got, want := string(mustRequest(t, crlf(tc.in)).Append(nil)), crlf(tc.want); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}
