package http1_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"agentproxy/adapters/gateway/http1"
)

const connectRequest = "CONNECT www.example.com:443 HTTP/1.1\r\nHost: www.example.com:443\r\n" +
	"Proxy-Authorization: Basic c2Vzc2lvbjAxMjM0NTY3ODk6cGFzc3dvcmQwMTIzNDU2Nzg5\r\n" +
	"User-Agent: python-requests/2.32.3\r\nProxy-Connection: Keep-Alive\r\n\r\n"

const browserRequest = "GET http://www.example.com/catalogue/page-2.html?sort=price&dir=asc HTTP/1.1\r\n" +
	"Host: www.example.com\r\nProxy-Connection: keep-alive\r\n" +
	"Proxy-Authorization: Basic c2Vzc2lvbjAxMjM0NTY3ODk6cGFzc3dvcmQwMTIzNDU2Nzg5\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36\r\n" +
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n" +
	"Accept-Encoding: gzip, deflate\r\nAccept-Language: en-US,en;q=0.9\r\n" +
	"Cookie: a=0123456789abcdef; b=0123456789abcdef\r\nUpgrade-Insecure-Requests: 1\r\n\r\n"

const originResponse = "HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nServer: nginx\r\n" +
	"Content-Type: text/html; charset=utf-8\r\nContent-Length: 1024\r\nConnection: keep-alive\r\n" +
	"Cache-Control: max-age=60, public\r\nETag: \"0123456789abcdef\"\r\nVary: Accept-Encoding\r\n\r\n"

// again serves the same bytes for ever, a message a read.
type again struct{ b []byte }

func (a again) Read(p []byte) (int, error) { return copy(p, a.b), nil }

func BenchmarkConnect(b *testing.B) {
	r := http1.NewReader(again{[]byte(connectRequest)})
	var h http1.RequestHead
	b.ReportAllocs()
	for b.Loop() {
		if err := http1.ReadRequest(r, &h); err != nil {
			b.Fatal(err)
		}
		if _, _, ok := h.Credentials(); !ok || h.Target().Port != 443 {
			b.Fatal("misread")
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	r := http1.NewReader(again{[]byte(browserRequest)})
	var h http1.RequestHead
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if err := http1.ReadRequest(r, &h); err != nil {
			b.Fatal(err)
		}
		if _, _, ok := h.Credentials(); !ok || h.Target().Port != 80 || len(h.Append(buf)) < 100 {
			b.Fatal("misread")
		}
	}
}

func BenchmarkResponse(b *testing.B) {
	r := http1.NewReader(again{[]byte(originResponse)})
	var h http1.ResponseHead
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if err := http1.ReadResponse(r, &h, http1.Exchange{}); err != nil {
			b.Fatal(err)
		}
		if len(h.Append(buf, false)) < 100 {
			b.Fatal("misread")
		}
	}
}

func BenchmarkResponseBody(b *testing.B) {
	r := http1.NewReader(again{[]byte(originResponse + strings.Repeat("x", 1024))})
	var h http1.ResponseHead
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if err := http1.ReadResponse(r, &h, http1.Exchange{}); err != nil {
			b.Fatal(err)
		}
		if _, err := http1.CopyResponse(io.Discard, h.Append(buf, false), r, h.Body, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChunked(b *testing.B) {
	in := append(bytes.Repeat([]byte("1000\r\n"+strings.Repeat("x", 4096)+"\r\n"), 256), "0\r\n\r\n"...)
	src := bytes.NewReader(in)
	r := http1.NewReader(src)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(in)
		if _, err := http1.CopyResponse(io.Discard, nil, r, http1.Body{Kind: http1.Chunked}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
