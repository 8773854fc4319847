package http1_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentproxy/adapters/gateway/http1"
)

func FuzzRequestHead(f *testing.F) {
	for _, tc := range refused {
		f.Add([]byte(tc.head))
	}
	f.Add([]byte(browserRequest))
	f.Add([]byte("CONNECT [::1]:443 HTTP/1.0\r\nProxy-Authorization: Basic dTpw\r\n\r\n"))
	f.Add([]byte("GET http://a?b HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, x\r\nUpgrade: websocket\r\nX: y\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var h http1.RequestHead
		if http1.ReadRequest(http1.NewReader(bytes.NewReader(in)), &h) != nil {
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
		if len(absolute) > http1.MaxHead {
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
func sameForNetHTTP(t *testing.T, h *http1.RequestHead, out []byte) {
	t.Helper()
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(out)))
	if err != nil {
		return
	}
	want := map[http1.BodyKind]int64{http1.NoBody: 0, http1.Sized: h.Body.Length, http1.Chunked: -1}[h.Body.Kind]
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
		ex := http1.Exchange{Head: head, HTTP10: http10, Upgrade: up}
		var h http1.ResponseHead
		if http1.ReadResponse(http1.NewReader(bytes.NewReader(in)), &h, ex) != nil {
			return
		}
		out := h.Append(nil, false)
		oneFraming(t, out)
		if bytes.Contains(bytes.ToLower(out), []byte("\nproxy-status: agentproxy")) {
			t.Fatalf("%q has the field of this proxy", out)
		}
		var again http1.ResponseHead
		if err := http1.ReadResponse(http1.NewReader(bytes.NewReader(out)), &again, ex); err != nil {
			if len(out) > http1.MaxHead || bytes.Count(out, []byte("\n")) > http1.MaxFields {
				return
			}
			t.Fatalf("%q: %v", out, err)
		}
		unchunked := h.Body.Kind == http1.Unchunked && again.Body.Kind == http1.UntilClose
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
		r := http1.NewReader(bytes.NewReader(in))
		moved, err := http1.CopyRequest(&framed, nil, r, http1.Body{Kind: http1.Chunked}, nil)
		_, _ = io.Copy(&rest, r)
		metered, _ := http1.CopyRequest(io.Discard, nil, http1.NewReader(bytes.NewReader(in)),
			http1.Body{Kind: http1.Chunked}, &allowance{int(limit), 1 << 20})
		if metered.In > int64(limit) {
			t.Fatalf("took %d of %d", metered.In, limit)
		}
		if err != nil {
			return
		}
		if moved.In != int64(len(in)-rest.Len()) || moved.Out != int64(framed.Len()) {
			t.Fatalf("counted %+v of %d and %d", moved, len(in)-rest.Len(), framed.Len())
		}
		if _, err := http1.CopyResponse(&plain, nil, http1.NewReader(bytes.NewReader(in)), http1.Body{Kind: http1.Unchunked}, nil); err != nil {
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
