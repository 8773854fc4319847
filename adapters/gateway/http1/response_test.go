package http1_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"agentproxy/adapters/gateway/http1"
)

func readResponse(s string, ex http1.Exchange) (*http1.ResponseHead, error) {
	var h http1.ResponseHead
	return &h, http1.ReadResponse(http1.NewReader(strings.NewReader(s)), &h, ex)
}

func crlf(s string) string { return strings.ReplaceAll(s, "|", "\r\n") + "\r\n\r\n" }

func TestAResponseIsFramedAndRewritten(t *testing.T) {
	t.Parallel()
	none := http1.Body{}
	sized := http1.Body{Kind: http1.Sized, Length: 5}
	chunked := http1.Body{Kind: http1.Chunked}
	until := http1.Body{Kind: http1.UntilClose}
	for _, tc := range []struct {
		name, in         string
		ex               http1.Exchange
		want             string
		body             http1.Body
		upstream, client bool
	}{
		{"Content-Length", "HTTP/1.1 200 OK|Content-Length: 5|A: b", http1.Exchange{},
			"HTTP/1.1 200 OK|Content-Length: 5|A: b", sized, true, true},
		{"chunked", "HTTP/1.1 200 OK|transfer-encoding: Chunked", http1.Exchange{},
			"HTTP/1.1 200 OK|transfer-encoding: chunked", chunked, true, true},
		{"until close", "HTTP/1.1 200 OK|A: b", http1.Exchange{},
			"HTTP/1.1 200 OK|A: b|Connection: close", until, false, false},
		{"chunked and a length: chunked wins, the target is not reused",
			"HTTP/1.1 200 OK|Content-Length: 5|Transfer-Encoding: chunked", http1.Exchange{},
			"HTTP/1.1 200 OK|Transfer-Encoding: chunked", chunked, false, true},
		{"chunks are taken off for HTTP/1.0", "HTTP/1.1 200 OK|Transfer-Encoding: chunked", http1.Exchange{HTTP10: true, Close: true},
			"HTTP/1.1 200 OK|Connection: close", http1.Body{Kind: http1.Unchunked}, true, false},
		{"HTTP/1.0 of the target", "HTTP/1.0 200 OK|Content-Length: 5|Connection: keep-alive", http1.Exchange{},
			"HTTP/1.1 200 OK|Content-Length: 5", sized, false, true},
		{"the target closes, the client stays", "HTTP/1.1 200 OK|Content-Length: 5|Connection: close", http1.Exchange{},
			"HTTP/1.1 200 OK|Content-Length: 5", sized, false, true},
		{"the client closes, the target stays", "HTTP/1.1 200 OK|Content-Length: 5", http1.Exchange{Close: true},
			"HTTP/1.1 200 OK|Content-Length: 5|Connection: close", sized, true, false},
		{"HEAD with a length", "HTTP/1.1 200 OK|Content-Length: 5", http1.Exchange{Head: true},
			"HTTP/1.1 200 OK|Content-Length: 5", none, true, true},
		{"HEAD without framing", "HTTP/1.1 200 OK", http1.Exchange{Head: true}, "HTTP/1.1 200 OK", none, true, true},
		{"HEAD with chunked", "HTTP/1.1 200 OK|Transfer-Encoding: chunked", http1.Exchange{Head: true},
			"HTTP/1.1 200 OK", none, true, true},
		{"204 never has framing", "HTTP/1.1 204 No Content|Content-Length: 5", http1.Exchange{},
			"HTTP/1.1 204 No Content", none, true, true},
		{"204 to HEAD neither", "HTTP/1.1 204 No Content|Content-Length: 5", http1.Exchange{Head: true},
			"HTTP/1.1 204 No Content", none, true, true},
		{"304 keeps its length as information", "HTTP/1.1 304 Not Modified|Content-Length: 5", http1.Exchange{},
			"HTTP/1.1 304 Not Modified|Content-Length: 5", none, true, true},
		{"an interim response never has close", "HTTP/1.1 103 Early Hints|Link: x|Content-Length: 5", http1.Exchange{Close: true},
			"HTTP/1.1 103 Early Hints|Link: x", none, true, false},
		{"a switch to WebSocket", "HTTP/1.1 101 Switching Protocols|Connection: Upgrade|Upgrade: websocket|Sec-WebSocket-Accept: x",
			http1.Exchange{Upgrade: true},
			"HTTP/1.1 101 Switching Protocols|Upgrade: websocket|Connection: Upgrade|Sec-WebSocket-Accept: x", none, false, false},
		{"an upgrade that did not happen", "HTTP/1.1 426 Upgrade Required|Upgrade: h2c|Content-Length: 5", http1.Exchange{Upgrade: true},
			"HTTP/1.1 426 Upgrade Required|Content-Length: 5", sized, true, true},
		{"a tunnel of an upstream", "HTTP/1.1 200 OK|Content-Length: 5", http1.Exchange{Connect: true},
			"HTTP/1.1 200 OK|Connection: close", none, false, false},
		{"an upstream that refuses a tunnel", "HTTP/1.1 407 No|Content-Length: 5", http1.Exchange{Connect: true},
			"HTTP/1.1 407 No|Content-Length: 5", sized, true, true},
		{"hop-by-hop fields stop here",
			"HTTP/1.1 200 OK|Connection: X-A|X-A: 1|Keep-Alive: 5|Proxy-Authenticate: Basic|Trailer: X|TE: x|Content-Length: 5|" +
				"Proxy-Connection: x|Proxy-Authorization: x|Proxy-Authentication-Info: x", http1.Exchange{},
			"HTTP/1.1 200 OK|Content-Length: 5", sized, true, true},
		{"framing cannot be named away", "HTTP/1.1 200 OK|Connection: content-length|Content-Length: 5", http1.Exchange{},
			"HTTP/1.1 200 OK|Content-Length: 5", sized, true, true},
		{"equal lengths become one", "HTTP/1.1 200 OK|Content-Length: 5|Content-Length: 5", http1.Exchange{},
			"HTTP/1.1 200 OK|Content-Length: 5", sized, true, true},
		{"the field of this proxy is removed", "HTTP/1.1 200 OK|Proxy-Status: x, AgentProxy; error=dns_error|Content-Length: 5", http1.Exchange{},
			"HTTP/1.1 200 OK|Content-Length: 5", sized, true, true},
		{"nor in an escaped one", `HTTP/1.1 200 OK|Proxy-Status: "agent\pro\xy"; error=dns_error|Content-Length: 5`, http1.Exchange{},
			"HTTP/1.1 200 OK|Content-Length: 5", sized, true, true},
		{"the fields of other proxies stay", "HTTP/1.1 200 OK|Proxy-Status: cdn; hit|Content-Length: 5", http1.Exchange{},
			"HTTP/1.1 200 OK|Proxy-Status: cdn; hit|Content-Length: 5", sized, true, true},
		{"no reason", "HTTP/1.1 200|Content-Length: 5", http1.Exchange{}, "HTTP/1.1 200 |Content-Length: 5", sized, true, true},
		{"an invented status", "HTTP/1.1 999 Request denied|Content-Length: 5", http1.Exchange{},
			"HTTP/1.1 999 Request denied|Content-Length: 5", sized, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, err := readResponse(crlf(tc.in), tc.ex)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(h.Append(nil, false)), crlf(tc.want); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if h.Body != tc.body || h.KeepUpstream != tc.upstream || h.KeepClient != tc.client {
				t.Errorf("body %v, upstream kept %v, client kept %v; want %v, %v, %v",
					h.Body, h.KeepUpstream, h.KeepClient, tc.body, tc.upstream, tc.client)
			}
		})
	}
}

func TestTheCallerCanCloseTheClient(t *testing.T) {
	t.Parallel()
	h, err := readResponse("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", http1.Exchange{})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(h.Append(nil, true)); !strings.HasSuffix(got, "\r\nConnection: close\r\n\r\n") {
		t.Errorf("%q does not have close", got)
	}
}

func TestAResponseWithBareLineFeedsIsRepaired(t *testing.T) {
	t.Parallel()
	h, err := readResponse("HTTP/1.1 200 OK\nA: b\r\nContent-Length: 5\n\n", http1.Exchange{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(h.Append(nil, false)), crlf("HTTP/1.1 200 OK|A: b|Content-Length: 5"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestASpoiledResponseIs502(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, tc := range []struct{ name, in, kind string }{
		{"no status line", "hello\r\n\r\n", "http_protocol_error"},
		{"an empty line first", "\r\n" + ok + "\r\n", "http_protocol_error"},
		{"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", "http_protocol_error"},
		{"a short status", "HTTP/1.1 20 OK\r\n\r\n", "http_protocol_error"},
		{"a long status", "HTTP/1.1 2000 OK\r\n\r\n", "http_protocol_error"},
		{"status 099", "HTTP/1.1 099 OK\r\n\r\n", "http_protocol_error"},
		{"a bare CR in the reason", "HTTP/1.1 200 O\rK\r\n\r\n", "http_protocol_error"},
		{"a NUL in a value", ok + "A: \x00\r\n\r\n", "http_protocol_error"},
		{"a bare CR in a value", ok + "A: b\rC: d\r\n\r\n", "http_protocol_error"},
		{"a folded field", ok + "A: b\r\n c\r\n\r\n", "http_protocol_error"},
		{"space before the colon", ok + "A : b\r\n\r\n", "http_protocol_error"},
		{"no colon", ok + "A\r\n\r\n", "http_protocol_error"},
		{"conflicting lengths", ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "http_protocol_error"},
		{"no length", ok + "Content-Length: x\r\n\r\n", "http_protocol_error"},
		{"another transfer coding", ok + "Transfer-Encoding: gzip\r\n\r\n", "http_response_transfer_coding"},
		{"chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "http_response_transfer_coding"},
		{"a long head", ok + "A: " + strings.Repeat("b", http1.MaxHead) + "\r\n\r\n", "http_response_header_section_size"},
		{"many fields", ok + strings.Repeat("A: b\r\n", 129) + "\r\n", "http_response_header_section_size"},
		{"101 unasked", "HTTP/1.1 101 X\r\nUpgrade: websocket\r\n\r\n", "http_upgrade_failed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := readResponse(tc.in, http1.Exchange{})
			var e *http1.Error
			if !errors.As(err, &e) || e.Status != 502 || e.Type != tc.kind {
				t.Errorf("%#v, want a 502 %s", err, tc.kind)
			}
		})
	}
	t.Run("101 to another protocol", func(t *testing.T) {
		if _, err := readResponse("HTTP/1.1 101 X\r\nUpgrade: h2c\r\n\r\n", http1.Exchange{Upgrade: true}); status(err) != 502 {
			t.Error(err)
		}
	})
	t.Run("an end within it is unexpected", func(t *testing.T) {
		if _, err := readResponse(ok, http1.Exchange{}); err != io.ErrUnexpectedEOF {
			t.Error(err)
		}
	})
}

func TestInterimResponses(t *testing.T) {
	t.Parallel()
	const interim, final = "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	read := func(n int, ex http1.Exchange) (forwarded int, h http1.ResponseHead, err error) {
		r := http1.NewReader(strings.NewReader(strings.Repeat(interim, n) + final))
		err = http1.ReadFinal(r, &h, ex, func(*http1.ResponseHead) error { forwarded++; return nil })
		return forwarded, h, err
	}
	t.Run("are handed on before the final one", func(t *testing.T) {
		if n, h, err := read(http1.MaxInterim, http1.Exchange{}); err != nil || n != http1.MaxInterim || h.Status != 200 {
			t.Errorf("%d handed on, status %d, %v", n, h.Status, err)
		}
	})
	t.Run("are kept from HTTP/1.0", func(t *testing.T) {
		if n, h, err := read(2, http1.Exchange{HTTP10: true}); err != nil || n != 0 || h.Status != 200 {
			t.Errorf("%d handed on, status %d, %v", n, h.Status, err)
		}
	})
	t.Run("are bounded", func(t *testing.T) {
		if n, _, err := read(http1.MaxInterim+1, http1.Exchange{}); status(err) != 502 {
			t.Errorf("%d handed on, %v", n, err)
		}
	})
	t.Run("are bounded in bytes", func(t *testing.T) {
		hint := "HTTP/1.1 103 Early Hints\r\nLink: " + strings.Repeat("x", http1.MaxInterimBytes/4) + "\r\n\r\n"
		for _, ex := range []http1.Exchange{{}, {HTTP10: true}} {
			var h http1.ResponseHead
			n := 0
			r := http1.NewReader(strings.NewReader(strings.Repeat(hint, 4) + final))
			err := http1.ReadFinal(r, &h, ex, func(*http1.ResponseHead) error { n++; return nil })
			if status(err) != 502 || n > 3 || ex.HTTP10 && h.Withheld != 3*len(hint) {
				t.Errorf("%+v: %d handed on, %d withheld, %v", ex, n, h.Withheld, err)
			}
		}
	})
	t.Run("stop when they cannot be handed on", func(t *testing.T) {
		var h http1.ResponseHead
		gone := errors.New("gone")
		r := http1.NewReader(strings.NewReader(interim + final))
		if err := http1.ReadFinal(r, &h, http1.Exchange{}, func(*http1.ResponseHead) error { return gone }); err != gone {
			t.Error(err)
		}
	})
}
