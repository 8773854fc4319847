package httpapi_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/httpapi"
	"agentproxy/test/fake"
)

// With a certificate the API takes TLS, HTTP/1.1 and HTTP/2, and refuses plain text but for an authority.
func TestTheAPIWithACertificate(t *testing.T) {
	t.Parallel()
	from := httptest.NewUnstartedServer(nil)
	from.StartTLS()
	defer from.Close()
	own := from.TLS.Certificates[0]
	s := httpapi.New(
		httpapi.Config{Addr: "127.0.0.1:0", PerAddress: 8, Connections: 16,
			TLS: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &own, nil }},
			Challenge: func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, "/.well-known/acme-challenge/") {
					return false
				}
				_, _ = io.WriteString(w, "answered")
				return true
			}},
		httpapi.Deps{Log: slog.New(slog.DiscardHandler), IDs: &fake.IDs{}, Clock: fake.NewClock()})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	silent, err := net.Dial("tcp", s.Addr().String()) // no other waits for it
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	roots := from.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	get := func(url string, two bool) (*http.Response, string) {
		t.Helper()
		c := &http.Client{Timeout: time.Minute, Transport: &http.Transport{ForceAttemptHTTP2: two,
			TLSClientConfig: &tls.Config{RootCAs: roots}}}
		defer c.CloseIdleConnections()
		res, err := c.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return res, string(body)
	}
	at := s.Addr().String()
	for _, two := range []bool{false, true} {
		res, body := get("https://"+at+"/v1/ip", two)
		if res.StatusCode != 200 || (res.ProtoMajor == 2) != two || !strings.Contains(body, `"ip":"127.0.0.1"`) {
			t.Errorf("by TLS: %s %s %s", res.Proto, res.Status, body)
		}
	}
	res, body := get("http://"+at+"/v1/ip", false)
	if res.StatusCode != 426 || res.Header.Get("Upgrade") != "TLS/1.3" || !strings.Contains(body, `"TLS_REQUIRED"`) {
		t.Errorf("in plain text: %s %v %s", res.Status, res.Header, body)
	}
	if res, body := get("http://"+at+"/.well-known/acme-challenge/x", false); body != "answered" {
		t.Errorf("an authority gets %s %s", res.Status, body)
	}
}
