package http1_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentproxy/adapters/gateway/http1"
)

// The fields that a rewritten head may not carry on, in net/http's spelling.
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Upgrade"}

// fields draws field lines, some of them hop-by-hop.
func fields(t *rapid.T) string {
	line := rapid.Custom(func(t *rapid.T) string {
		name := rapid.SampledFrom([]string{"Accept", "x-a", "X-B", "COOKIE", "Keep-Alive", "TE", "Proxy-Connection"}).Draw(t, "name")
		value := rapid.StringMatching(`[!-~]{0,8}([ \t][!-~]{1,4})?`).Draw(t, "value")
		return name + ":" + rapid.SampledFrom([]string{"", " ", "\t "}).Draw(t, "space") + value + "\r\n"
	})
	named := rapid.SampledFrom([]string{"", "Connection: x-a\r\n", "Connection: keep-alive, X-B\r\n"}).Draw(t, "connection")
	return strings.Join(rapid.SliceOfN(line, 0, 12).Draw(t, "fields"), "") + named
}

// body draws a body with the fields that frame it.
func body(t *rapid.T) (framing, wireBody, data string) {
	parts := rapid.SliceOfN(rapid.StringN(1, 40, -1), 0, 5).Draw(t, "parts")
	data = strings.Join(parts, "")
	if rapid.Bool().Draw(t, "chunked") {
		for _, p := range parts {
			wireBody += fmt.Sprintf("%x;e=1\r\n%s\r\n", len(p), p)
		}
		return "Transfer-Encoding: chunked\r\n", wireBody + "0\r\n\r\n", data
	}
	return fmt.Sprintf("Content-Length: %d\r\n", len(data)), data, data
}

// without is h but for what ends at a proxy.
func without(h http.Header) http.Header {
	h = h.Clone()
	for _, options := range h["Connection"] {
		for _, o := range strings.Split(options, ",") {
			h.Del(strings.TrimSpace(o))
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
	return h
}

func sameHeader(t *rapid.T, got, want http.Header) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("fields %v, want %v", got, want)
	}
	for name, values := range want {
		if !slices.Equal(got[name], values) {
			t.Fatalf("%s: %q, want %q", name, got[name], values)
		}
	}
}

func TestNetHTTPReadsTheSameRequestBeforeAndAfter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		method := rapid.SampledFrom([]string{"GET", "POST", "PUT", "OPTIONS", "BREW"}).Draw(t, "method")
		uri := rapid.StringMatching(`http://[a-z]{1,8}(\.[a-z]{2,3})?(:[1-9][0-9]{0,3})?/[a-z]{0,4}(\?[a-z=&]{0,6})?`).Draw(t, "uri")
		framing, onWire, data := body(t)
		in := method + " " + uri + " HTTP/1.1\r\nHost: elsewhere\r\n" + fields(t) + framing + "\r\n" + onWire
		want, err := http.ReadRequest(bufio.NewReader(strings.NewReader(in)))
		if err != nil {
			t.Skip(err)
		}
		var h http1.RequestHead
		r := http1.NewReader(strings.NewReader(in))
		if err := http1.ReadRequest(r, &h); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if moved, err := http1.CopyRequest(&out, h.Append(nil), r, h.Body, nil); err != nil || moved.In != int64(len(onWire)) {
			t.Fatal(moved, err)
		}
		got, err := http.ReadRequest(bufio.NewReader(&out))
		if err != nil {
			t.Fatal(err)
		}
		host, _ := strings.CutSuffix(want.URL.Host, ":80")
		if got.Method != want.Method || got.Host != host || got.URL.RequestURI() != want.URL.RequestURI() {
			t.Fatalf("%s %s %s, want %s %s", got.Method, got.Host, got.URL, want.Method, want.URL)
		}
		sameHeader(t, got.Header, without(want.Header))
		if b, err := io.ReadAll(got.Body); err != nil || string(b) != data || out.Len() != 0 {
			t.Fatalf("body %q, %v, want %q", b, err, data)
		}
	})
}

func TestNetHTTPReadsTheSameResponseBeforeAndAfter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom([]int{200, 204, 206, 301, 304, 404, 500, 999}).Draw(t, "status")
		method := rapid.SampledFrom([]string{"GET", "HEAD"}).Draw(t, "method")
		framing, onWire, _ := body(t)
		if method == "HEAD" || code == 204 || code == 304 {
			onWire = ""
		}
		in := fmt.Sprintf("HTTP/1.1 %d Some Reason\r\n%s%s\r\n%s", code, fields(t), framing, onWire)
		req := &http.Request{Method: method}
		want, err := http.ReadResponse(bufio.NewReader(strings.NewReader(in)), req)
		if err != nil {
			t.Skip(err)
		}
		var h http1.ResponseHead
		r := http1.NewReader(strings.NewReader(in))
		if err := http1.ReadResponse(r, &h, http1.Exchange{Head: method == "HEAD"}); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if moved, err := http1.CopyResponse(&out, h.Append(nil, false), r, h.Body, nil); err != nil || moved.In != int64(len(onWire)) {
			t.Fatal(moved, err)
		}
		got, err := http.ReadResponse(bufio.NewReader(&out), req)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != want.Status {
			t.Fatalf("status %q, want %q", got.Status, want.Status)
		}
		wanted := without(want.Header)
		if code == 204 {
			wanted.Del("Content-Length") // a 204 has none (RFC 9110 section 8.6)
		}
		sameHeader(t, got.Header, wanted)
		a, errA := io.ReadAll(got.Body)
		b, errB := io.ReadAll(want.Body)
		if errA != nil || errB != nil || !bytes.Equal(a, b) || out.Len() != 0 {
			t.Fatalf("body %q %v, want %q %v", a, errA, b, errB)
		}
	})
}
