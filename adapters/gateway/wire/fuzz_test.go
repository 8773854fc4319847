package wire_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentproxy/adapters/gateway/wire"
)

func FuzzRequestHead(f *testing.F) {
	for _, tc := range refused {
		f.Add([]byte(tc.head))
	}
	f.Add([]byte(browserRequest))
	f.Add([]byte("CONNECT [::1]:443 HTTP/1.0\r\nProxy-Authorization: Basic dTpw\r\n\r\n"))
	f.Add([]byte("GET http://a?b HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, x\r\nUpgrade: websocket\r\nX: y\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var h wire.RequestHead
		if wire.ReadRequest(wire.NewReader(bytes.NewReader(in)), &h) != nil {
			return
		}
		h.Credentials()
		if n := h.Metered(); n <= 0 || n > len(in) {
			t.Fatalf("%d bytes metered of %d", n, len(in))
		}
		if h.Connect() {
			return
		}
		out, ex, body := h.Append(nil), h.Exchange(), h.Body
		oneFraming(t, out)
		sameForNetHTTP(t, &h, out)
		// As the next proxy would get it: the same meaning, and nothing left to remove.
		line, rest, _ := bytes.Cut(out, []byte("\r\n"))
		parts := bytes.SplitN(line, []byte(" "), 3)
		host, path := hostOf(out), string(parts[1])
		if path == "*" {
			path = ""
		}
		absolute := string(parts[0]) + " http://" + host + path + " HTTP/1.1\r\n" + string(rest)
		if len(absolute) > wire.MaxHead {
			return
		}
		again := mustRequest(t, absolute)
		if again.Target() != h.Target() || again.Body != body || again.Exchange().Upgrade != ex.Upgrade {
			t.Fatalf("%q means something else than %q", absolute, in)
		}
		if got := again.Append(nil); !bytes.Equal(got, out) {
			t.Fatalf("rewritten again\n%q\nwant\n%q", got, out)
		}
	})
}

func hostOf(head []byte) string {
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if len(line) > 5 && strings.EqualFold(line[:5], "host:") {
			return strings.TrimSpace(line[5:])
		}
	}
	return ""
}

// oneFraming fails if a head frames its body twice, names a proxy's business or
// has a line that does not end in CRLF.
func oneFraming(t *testing.T, head []byte) {
	t.Helper()
	lengths, codings := 0, 0
	for line := range strings.SplitSeq(strings.TrimSuffix(string(head), "\r\n\r\n"), "\r\n") {
		if strings.ContainsAny(line, "\r\n\x00") {
			t.Fatalf("control characters in %q", line)
		}
		name, _, _ := strings.Cut(line, ":")
		switch strings.ToLower(name) {
		case "content-length":
			lengths++
		case "transfer-encoding":
			codings++
		case "proxy-authorization", "proxy-connection", "keep-alive", "te", "trailer":
			t.Fatalf("%q is passed on", line)
		}
	}
	if lengths+codings > 1 {
		t.Fatalf("two framings in %q", head)
	}
}

// sameForNetHTTP holds what net/http makes of a rewritten head against ours. It may
// refuse more than we do, such as a URL with a broken escape.
func sameForNetHTTP(t *testing.T, h *wire.RequestHead, out []byte) {
	t.Helper()
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(out)))
	if err != nil {
		return
	}
	want := map[wire.BodyKind]int64{wire.NoBody: 0, wire.Sized: h.Body.Length, wire.Chunked: -1}[h.Body.Kind]
	if req.ContentLength != want || req.Method != string(h.Method()) {
		t.Fatalf("net/http reads %s with length %d of %q, want %d", req.Method, req.ContentLength, out, want)
	}
}

func FuzzResponseHead(f *testing.F) {
	f.Add([]byte(originResponse), false, false, false)
	f.Add([]byte("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Length: 3\n\n"), false, true, false)
	f.Add([]byte("HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade, y\r\nY: z\r\n\r\n"), false, false, true)
	f.Add([]byte("HTTP/1.0 304\r\nContent-Length: 3\r\nProxy-Status: agentproxy\r\n\r\n"), true, false, false)
	f.Fuzz(func(t *testing.T, in []byte, head, http10, up bool) {
		ex := wire.Exchange{Head: head, HTTP10: http10, Upgrade: up}
		var h wire.ResponseHead
		if wire.ReadResponse(wire.NewReader(bytes.NewReader(in)), &h, ex) != nil {
			return
		}
		out := h.Append(nil, false)
		oneFraming(t, out)
		if bytes.Contains(bytes.ToLower(out), []byte("\nproxy-status: agentproxy")) {
			t.Fatalf("%q speaks in our name", out)
		}
		var again wire.ResponseHead
		if err := wire.ReadResponse(wire.NewReader(bytes.NewReader(out)), &again, ex); err != nil {
			if len(out) > wire.MaxHead || bytes.Count(out, []byte("\n")) > wire.MaxFields {
				return
			}
			t.Fatalf("%q: %v", out, err)
		}
		unchunked := h.Body.Kind == wire.Unchunked && again.Body.Kind == wire.UntilClose
		if again.Status != h.Status || again.Body != h.Body && !unchunked {
			t.Fatalf("%q means something else than %q", out, in)
		}
	})
}

func FuzzChunked(f *testing.F) {
	for _, s := range []string{"0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "A;b=\"c\"\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
		"5 \r\nhello\r\n0\r\n\r\n", "5\nhello\n0\n\n", "fffffffffffffff\r\nx", "1\r\na\r\n1\r\nb\r\n0;x\r\n\r\nGET /"} {
		f.Add([]byte(s), uint16(1000))
	}
	f.Fuzz(func(t *testing.T, in []byte, limit uint16) {
		var framed, plain, rest bytes.Buffer
		r := wire.NewReader(bytes.NewReader(in))
		moved, err := wire.CopyRequest(&framed, nil, r, wire.Body{Kind: wire.Chunked}, nil)
		_, _ = io.Copy(&rest, r)
		metered, _ := wire.CopyRequest(io.Discard, nil, wire.NewReader(bytes.NewReader(in)),
			wire.Body{Kind: wire.Chunked}, &allowance{int(limit), 1 << 20})
		if metered.In > int64(limit) {
			t.Fatalf("took %d of %d", metered.In, limit)
		}
		if err != nil {
			return
		}
		if moved.In != int64(len(in)-rest.Len()) || moved.Out != int64(framed.Len()) {
			t.Fatalf("counted %+v of %d and %d", moved, len(in)-rest.Len(), framed.Len())
		}
		if _, err := wire.CopyResponse(&plain, nil, wire.NewReader(bytes.NewReader(in)), wire.Body{Kind: wire.Unchunked}, nil); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(chunkedByNetHTTP(&framed))
		if err != nil || !bytes.Equal(b, plain.Bytes()) {
			t.Fatalf("net/http reads %q, %v; want %q", b, err, plain.Bytes())
		}
	})
}

func chunkedByNetHTTP(r io.Reader) io.Reader {
	res, err := http.ReadResponse(bufio.NewReader(io.MultiReader(
		strings.NewReader("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), r)), nil)
	if err != nil {
		panic(err) // the head is ours
	}
	return res.Body
}

func FuzzSocks5(f *testing.F) {
	f.Add([]byte("\x05\x01\x02\x01\x01u\x01p\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50tunnel"))
	f.Add([]byte("\x05\x02\x00\x02\x01\x01u\x01p\x05\x01\x00\x03\x01a\x01\xbb"))
	f.Add([]byte("\x05\x01\x02\x01\x01u\x01p\x05\x03\x00\x04" + strings.Repeat("\x00", 18)))
	f.Add([]byte("\x05\x01\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var s wire.Socks
		var out bytes.Buffer
		r := bytes.NewReader(in)
		if s.Greet(r, &out) != nil {
			if out.Len() > 2 {
				t.Fatalf("answered %q", out.Bytes())
			}
			return
		}
		user, password, err := s.Auth(r)
		if err != nil {
			return
		}
		if len(user) == 0 || len(password) == 0 {
			t.Fatal("empty credentials")
		}
		if target, err := s.Request(r); err == nil && (target.Host == "" || target.Port == 0 || len(target.Host) > 255) {
			t.Fatalf("target %+v", target)
		}
	})
}
