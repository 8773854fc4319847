package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/proxy"

	"agentproxy/adapters/gateway/socks5"
)

// The bounds of the local proxy.
const (
	maxForwarded  = 512 // connections at once; more wait in the kernel's queue
	firstByteTime = 10 * time.Second
	dialTime      = 30 * time.Second // the gateway gives a target 15 s
	idleTime      = time.Minute      // between two plain requests
	maxRefusal    = 64 << 10         // bytes of an answer that is not a tunnel
)

// forwarder is a local proxy that adds the credential of another proxy. It takes CONNECT and plain
// requests of HTTP and CONNECT of SOCKS5 on one port, without a password.
type forwarder struct {
	proxy *url.URL
	tls   *tls.Config // with which a proxy of https is reached: its certificate is verified
	slots chan struct{}
	http  *http.Server
	plain *httputil.ReverseProxy
}

func newForwarder(upstream *url.URL) *forwarder {
	quiet := log.New(io.Discard, "", 0)
	f := &forwarder{proxy: upstream, slots: make(chan struct{}, maxForwarded),
		tls: &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			ClientSessionCache: tls.NewLRUClientSessionCache(0)}}
	f.plain = &httputil.ReverseProxy{
		// Without it the proxy would add headers about the client.
		Rewrite: func(*httputil.ProxyRequest) {},
		Transport: &http.Transport{Proxy: http.ProxyURL(upstream), DisableCompression: true, MaxIdleConnsPerHost: 32,
			IdleConnTimeout: idleTime / 2, TLSClientConfig: f.tls},
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusProxyAuthRequired {
				return errRejected
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { refuseForward(w, err) },
		ErrorLog:     quiet,
	}
	f.http = &http.Server{Handler: f, ReadHeaderTimeout: firstByteTime, IdleTimeout: idleTime, ErrorLog: quiet}
	return f
}

// errRejected is a 407, which would make the client ask for a password.
var errRejected = errors.New("the session's password is no longer valid; start apx forward again")

func refuseForward(w http.ResponseWriter, err error) {
	message := "the session's proxy cannot be reached"
	if unverified, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		message = "the certificate of the session's proxy is not trusted: " + unverified.Err.Error()
	}
	if errors.Is(err, errRejected) {
		message = err.Error()
	}
	http.Error(w, "apx forward: "+message, http.StatusBadGateway)
}

// untrusted returns why the certificate of a proxy of https is not trusted. A proxy that cannot be reached at the
// moment has no fault: it is asked again for each connection, and nothing is sent to it without TLS.
func (f *forwarder) untrusted(ctx context.Context) error {
	if f.proxy.Scheme != "https" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, firstByteTime)
	defer cancel()
	c, err := f.dial(ctx)
	if unverified, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("the certificate of the session's proxy is not trusted: %w", unverified.Err)
	}
	if err == nil {
		c.Close()
	}
	return nil
}

// dial connects to the session's proxy.
func (f *forwarder) dial(ctx context.Context) (net.Conn, error) {
	if f.proxy.Scheme == "https" {
		return (&tls.Dialer{Config: f.tls}).DialContext(ctx, "tcp", f.proxy.Host)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", f.proxy.Host)
}

// serve accepts until the context ends.
func (f *forwarder) serve(ctx context.Context, l net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	requests := &handed{Listener: l, conns: make(chan net.Conn), done: ctx.Done()}
	go func() { _ = f.http.Serve(requests) }()
	go func() {
		<-ctx.Done()
		_ = l.Close()
		_ = f.http.Close()
	}()
	for {
		select {
		case f.slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		c, err := l.Accept()
		if err != nil {
			<-f.slots
			if ctx.Err() != nil {
				return nil
			}
			if _, temporary := errors.AsType[*net.OpError](err); temporary {
				time.Sleep(100 * time.Millisecond) // out of file descriptors: some will be free
				continue
			}
			return fmt.Errorf("accept: %w", err)
		}
		go f.welcome(ctx, &slotted{Conn: c, free: sync.OnceFunc(func() { <-f.slots })}, requests)
	}
}

// welcome detects HTTP or SOCKS5 by the first byte.
func (f *forwarder) welcome(ctx context.Context, c net.Conn, requests *handed) {
	_ = c.SetReadDeadline(time.Now().Add(firstByteTime))
	r := bufio.NewReader(c)
	first, err := r.Peek(1)
	if err != nil {
		c.Close()
		return
	}
	b := &buffered{c, r}
	if first[0] == socks5.Version {
		f.socks(ctx, b)
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	select {
	case requests.conns <- b:
	case <-ctx.Done():
		c.Close()
	}
}

// ServeHTTP serves one request of a client.
func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		f.connect(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		f.plain.ServeHTTP(w, r)
	default: // also what a web page may send here
		http.Error(w, "apx forward: this is a proxy; set its address as the proxy of a client", http.StatusBadRequest)
	}
}

// connect opens a tunnel. What the gateway refuses with is passed on.
func (f *forwarder) connect(w http.ResponseWriter, r *http.Request) {
	up, refused, err := f.tunnel(r.Context(), r.Host)
	switch {
	case err != nil:
		refuseForward(w, err)
		return
	case refused != nil:
		passOn(w, refused)
		return
	}
	down, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		up.Close()
		refuseForward(w, err)
		return
	}
	if _, err := io.WriteString(down, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		up.Close()
		down.Close()
		return
	}
	relay(&buffered{down, rest.Reader}, up)
}

// passOn answers what the gateway refused with, and its reason: most clients show nothing else of it.
func passOn(w http.ResponseWriter, refused *http.Response) {
	defer refused.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(refused.Body, maxRefusal))
	down, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		refuseForward(w, err)
		return
	}
	defer down.Close()
	answer := "HTTP/1.1 " + refused.Status + "\r\n"
	for _, name := range []string{"Content-Type", "Proxy-Status", "Retry-After"} {
		if v := refused.Header.Get(name); v != "" {
			answer += name + ": " + v + "\r\n"
		}
	}
	_, err = fmt.Fprintf(down, "%sContent-Length: %d\r\nConnection: close\r\n\r\n%s", answer, len(body), body)
	if err == nil && closeWrite(down) == nil { // what the client sent behind its request must not reset the connection
		_ = down.SetReadDeadline(time.Now().Add(firstByteTime))
		_, _ = io.Copy(io.Discard, down)
	}
}

// tunnel opens a tunnel through the session's proxy, or returns its refusal.
func (f *forwarder) tunnel(ctx context.Context, target string) (net.Conn, *http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	password, _ := f.proxy.User.Password()
	if f.proxy.Scheme == "socks5" {
		d, err := proxy.SOCKS5("tcp", f.proxy.Host, &proxy.Auth{User: f.proxy.User.Username(), Password: password}, nil)
		if err != nil {
			return nil, nil, err
		}
		c, err := d.(proxy.ContextDialer).DialContext(ctx, "tcp", target)
		return c, nil, err
	}
	c, err := f.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	_ = c.SetDeadline(time.Now().Add(dialTime))
	credential := base64.StdEncoding.EncodeToString([]byte(f.proxy.User.Username() + ":" + password))
	_, err = fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Basic %s\r\n\r\n",
		target, target, credential)
	r := bufio.NewReader(c)
	var answer *http.Response
	if err == nil {
		answer, err = http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	}
	switch {
	case err != nil:
		c.Close()
		return nil, nil, err
	case answer.StatusCode == http.StatusProxyAuthRequired:
		c.Close()
		return nil, nil, errRejected
	case answer.StatusCode != http.StatusOK:
		answer.Body = closing{answer.Body, c}
		return nil, answer, nil
	}
	_ = c.SetDeadline(time.Time{})
	return &buffered{c, r}, nil, nil
}
