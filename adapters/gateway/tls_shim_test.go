package gateway_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/gateway"
)

// certificate is a self-signed one for gateway.test.
var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gateway.test"},
		DNSNames: []string{"gateway.test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// certified gives a gateway a certificate.
func certified(s *setup) {
	s.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		c := certificate()
		return &c, nil
	}}
	s.TicketSecret = []byte("a secret of the tests")
}

// trusting is a client that takes the certificate.
func trusting(protocols ...string) *tls.Config {
	leaf, _ := x509.ParseCertificate(certificate().Certificate[0])
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{RootCAs: pool, ServerName: "gateway.test", NextProtos: protocols}
}

// dialTLS returns a TLS connection to the gateway.
func (w *world) dialTLS(cfg *tls.Config) *tls.Conn {
	w.t.Helper()
	raw, err := net.Dial("tcp", w.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	_ = raw.SetDeadline(time.Now().Add(patience))
	c := tls.Client(raw, cfg)
	w.t.Cleanup(func() { _ = raw.Close() })
	if err := c.Handshake(); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// insideTLS is the test whose parts run through TLS: begin puts a shim before their gateways.
const insideTLS = "TestInsideTLS/"

// shim takes plain connections and uses TLS to a gateway. It passes on ends and resets of both sides.
type shim struct {
	l      net.Listener
	target string
	cfg    *tls.Config
}

// throughTLS returns where the clients of a test connect: a shim before the gateway.
func throughTLS(t testing.TB, g *gateway.Gateway) string {
	s := &shim{l: listen(t), target: g.Addr().String(), cfg: trusting()}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = s.l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := s.l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { s.serve(c.(*net.TCPConn)) })
		}
	})
	return s.l.Addr().String()
}

func (s *shim) serve(client *net.TCPConn) {
	defer client.Close()
	conn, err := net.Dial("tcp", s.target)
	if err != nil {
		_ = client.SetLinger(0)
		return
	}
	raw := conn.(*net.TCPConn)
	defer raw.Close()
	secured := tls.Client(raw, s.cfg)
	if secured.Handshake() != nil {
		return
	}
	up := make(chan struct{})
	go func() {
		defer close(up)
		if _, err := io.Copy(secured, client); err != nil {
			_ = raw.SetLinger(0)
			_ = raw.Close()
			return
		}
		_ = secured.CloseWrite()
		_ = raw.CloseWrite()
	}()
	if _, err := io.Copy(client, secured); err != nil && !errors.Is(err, net.ErrClosed) {
		_ = client.SetLinger(0)
		_ = client.Close()
	} else {
		_ = client.CloseWrite()
	}
	<-up
}

// isInside reports whether a test is a part of insideTLS.
func isInside(t testing.TB) bool { return strings.HasPrefix(t.Name(), insideTLS) }
