package upstreamproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// http serves requests in absolute form one after another, and one CONNECT.
func (p *Proxy) http(c net.Conn, br *bufio.Reader) {
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		fault, late := p.fault()
		switch fault {
		case Drop:
			return
		case Garbage:
			_, _ = io.WriteString(c, "\x00\x01 this is not HTTP\r\n\r\n")
			return
		case Slow:
			p.wait(late)
			fault = None
		}
		if !p.request(c, br, r, fault) {
			return
		}
	}
}

// request serves one request and reports whether the connection is kept.
func (p *Proxy) request(c net.Conn, br *bufio.Reader, r *http.Request, fault Fault) bool {
	protocol, target := "http", r.URL.Host
	if r.Method == http.MethodConnect {
		protocol, target = "connect", r.Host
	} else if r.URL.Port() == "" {
		target = net.JoinHostPort(r.URL.Hostname(), "80")
	}
	if fault != None {
		return p.refuse(c, r, fault, "as the test wants it")
	}
	user, password, ok := proxyAuth(r)
	if !ok {
		return p.refuse(c, r, Unauthorized, "no credential")
	}
	a, exit, fault, err := p.enter(protocol, user, password, target)
	if err != nil {
		return p.refuse(c, r, fault, err.Error())
	}
	to, err := p.dial(target, exit)
	if err != nil {
		return p.refuse(c, r, Failed, err.Error())
	}
	defer p.drop(to)
	if protocol == "connect" {
		_, _ = io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
		p.relay(c, br, to, a)
		return false
	}
	return p.forward(c, r, to, a)
}

// forward sends a request on, without the header fields for this proxy.
func (p *Proxy) forward(c net.Conn, r *http.Request, to net.Conn, a *account) bool {
	for _, h := range []string{"Proxy-Authorization", "Proxy-Connection", "Connection", "Keep-Alive"} {
		r.Header.Del(h)
	}
	if r.Header["User-Agent"] == nil {
		r.Header["User-Agent"] = []string{""} // none is added
	}
	last := r.Close
	r.URL = &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	r.Close = true
	if err := r.Write(counter{to, p, &a.up}); err != nil {
		return p.refuse(c, r, Failed, err.Error())
	}
	res, err := http.ReadResponse(bufio.NewReader(to), r)
	if err != nil {
		return p.refuse(c, r, Failed, err.Error())
	}
	defer res.Body.Close()
	res.Header.Del("Connection")
	res.Close = last || res.ContentLength < 0
	err = res.Write(counter{c, p, &a.down})
	return err == nil && !res.Close
}

// refuse answers with the seller's message and closes the connection after CONNECT.
func (p *Proxy) refuse(c net.Conn, r *http.Request, f Fault, why string) bool {
	status, text := p.message(f, why)
	header := http.Header{"Content-Type": {"text/plain"}}
	switch f {
	case Unauthorized, Exhausted, Unfunded:
		header.Set("Proxy-Authenticate", `Basic realm="proxy"`)
	case TooMany:
		header.Set("Retry-After", "1")
	}
	if p.profile == "brightdata" {
		header.Set("x-brd-err-code", "client_1")
		header.Set("x-brd-err-msg", text)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	res := http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: r,
		ContentLength: int64(len(text)), Body: io.NopCloser(strings.NewReader(text)), Close: r.Method == http.MethodConnect}
	return res.Write(c) == nil && !res.Close
}

// message returns the status and the text of a refusal. Those of proxies.sx and
// DataImpulse are documented.
func (p *Proxy) message(f Fault, why string) (int, string) {
	status := map[Fault]int{Unauthorized: 407, Exhausted: 407, Unfunded: 407, PaymentRequired: 402, Forbidden: 403, TooMany: 429,
		Failed: 502, Unavailable: 503, NoStock: 502}[f]
	var code string
	switch p.profile {
	case "proxies.sx":
		code = map[Fault]string{Unauthorized: "E_AUTH_INVALID", Exhausted: "E_CAP_EXCEEDED",
			Unfunded: "E_BALANCE_EXHAUSTED", Forbidden: "E_SSRF_BLOCKED", TooMany: "E_RATE_LIMITED_CONN", Failed: "E_STOCK_DEGRADED", Unavailable: "E_INTERNAL", NoStock: "E_NO_STOCK_COUNTRY"}[f]
		return status, fmt.Sprintf("%s: %s (req: 00000000-0000-0000-0000-000000000000)", code, why)
	case "dataimpulse":
		code = map[Fault]string{Unauthorized: "NO_USER", Exhausted: "TRAFFIC_EXHAUSTED", Forbidden: "PORT_BLOCKED",
			Failed: "NO_HOST_CONNECTION", NoStock: "NO_RAY"}[f]
		if f == NoStock {
			status = 503
		}
		return status, code
	}
	return status, why
}

func proxyAuth(r *http.Request) (user, password string, ok bool) {
	probe := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	return probe.BasicAuth()
}
