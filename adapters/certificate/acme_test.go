package certificate_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"agentproxy/adapters/certificate"
	"agentproxy/adapters/storage"
	"agentproxy/ports"
	"agentproxy/test/syncbuffer"
)

const day = 24 * time.Hour

// hostOf returns a host of one test: certmagic keeps the challenges of a process by host, those of all its authorities.
func hostOf(t *testing.T) string {
	return strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:]) + ".proxy.test"
}

// both looks at two replicas at once.
func both(t *testing.T, a, b *certificate.Keeper) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() { a.Look(t.Context()) })
	wg.Go(func() { b.Look(t.Context()) })
	wg.Wait()
}

// Two replicas ask once, at first and when the certificate is due, and keep it while the authority is down for a week.
func TestReplicasAskOnce(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := hostOf(t)
			ca, at, c := newAuthority(t, 30*day), database(t), &clock{}
			var log syncbuffer.Buffer
			st := open(t, at)
			a := replica(t, ca.config(host), st, c, &log)
			b := replica(t, ca.config(host), open(t, at), c, &log)
			ca.answers(t, b)
			if shows(t, a, host) != nil {
				t.Fatal("there is a certificate before it was asked for")
			}
			both(t, a, b)
			both(t, a, b)
			first := shows(t, a, host)
			if n := ca.orders.Load(); n != 1 || first == nil || !first.Equal(shows(t, b, host)) {
				t.Fatalf("%d orders, %v and %v\n%s", n, first, shows(t, b, host), log.String())
			}
			if _, err := first.Verify(x509.VerifyOptions{DNSName: host, Roots: ca.roots(),
				Intermediates: chain(t, a, host)}); err != nil {
				t.Error(err)
			}
			if other := shows(t, a, "another.test"); !first.Equal(other) {
				t.Errorf("a client that names another host gets %v", other)
			}
			sealed(t, st, log.String())

			third := first.NotAfter.Add(-first.NotAfter.Sub(first.NotBefore) / 3)
			c.set(t, third.Add(-time.Minute))
			if both(t, a, b); ca.orders.Load() != 1 {
				t.Error("it was renewed before it was due")
			}
			ca.down.Store(true)
			for range 7 * 4 {
				c.advance(6 * time.Hour)
				if both(t, a, b); !first.Equal(shows(t, a, host)) || !first.Equal(shows(t, b, host)) {
					t.Fatal("the old certificate is not presented while the authority is down")
				}
			}
			if n := strings.Count(log.String(), "no new certificate"); n < 20 || n > 40 {
				t.Errorf("%d attempts are logged of 28 times that one was due", n)
			}
			ca.down.Store(false)
			ca.replace(300 * day) // it has lost the account, which the first attempt finds out
			for range 2 {
				c.advance(2 * time.Hour)
				both(t, a, b)
			}
			both(t, a, b)
			second := shows(t, a, host)
			if n := ca.orders.Load(); second.Equal(first) || !second.Equal(shows(t, b, host)) || n > 6 {
				t.Errorf("after the authority came back %v is presented, after %d orders\n%s", second, n, tail(log.String()))
			}
		})
	}
}

func tail(text string) string { return text[max(0, len(text)-4000):] }

// chain returns the certificates behind that of a host.
func chain(t *testing.T, k *certificate.Keeper, host string) *x509.CertPool {
	t.Helper()
	c, err := k.TLS().GetCertificate(&tls.ClientHelloInfo{ServerName: host})
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	for _, der := range c.Certificate[1:] {
		link, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		pool.AddCert(link)
	}
	return pool
}

// sealed checks that neither the database nor the log has a key in clear.
func sealed(t *testing.T, st ports.Store, log string) {
	t.Helper()
	n := 0
	err := st.View(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		names, err := tx.Certificates().Names(ctx, "")
		for _, name := range names {
			text, _, _, errGet := tx.Certificates().Get(ctx, name)
			if n++; errGet != nil || bytes.Contains(text, []byte("PRIVATE KEY")) || bytes.Contains(text, []byte("CERTIFICATE")) {
				t.Errorf("%s is stored in clear, %v", name, errGet)
			}
		}
		return err
	})
	if err != nil || n < 4 {
		t.Errorf("%d files are stored, %v", n, err)
	}
	if strings.Contains(log, "PRIVATE KEY") || strings.Contains(log, rootText) {
		t.Error("the log has a secret")
	}
}

// TestMain has the authority neither wait nor refuse by chance, and lifts the bound of certmagic on the attempts of a
// process, 10 in 10 s: a test makes those of a week at once. In a process that has REPLICA_DATABASE it runs a replica.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	certmagic.RateLimitEventsWindow = 0
	if os.Getenv("REPLICA_DATABASE") != "" {
		os.Exit(alone())
	}
	os.Exit(m.Run())
}

// alone runs a replica in a process of its own until it has a certificate.
func alone() int {
	t := &testing.T{}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(os.Getenv("REPLICA_ROOT")))
	st, err := storage.Open(context.Background(), storage.Config{Path: os.Getenv("REPLICA_DATABASE")})
	if err != nil {
		return 2
	}
	k, err := certificate.New(certificate.Config{Hosts: []string{os.Getenv("REPLICA_HOST")},
		DirectoryURL: os.Getenv("REPLICA_DIRECTORY"), Roots: trusted},
		certificate.Deps{Store: st, Secrets: secrets(t), Log: slog.New(slog.NewTextHandler(os.Stdout, nil))})
	if err != nil {
		return 2
	}
	k.Look(context.Background())
	if _, err := k.TLS().GetCertificate(&tls.ClientHelloInfo{}); err != nil {
		return 1
	}
	return 0
}

// process starts a replica in a process of its own.
func process(t *testing.T, ca *authority, at storage.Config, host string) (*exec.Cmd, *syncbuffer.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.server.Certificate().Raw})
	cmd.Env = append(os.Environ(), "REPLICA_DATABASE="+at.Path, "REPLICA_HOST="+host, "REPLICA_ROOT="+string(root),
		"REPLICA_DIRECTORY="+ca.server.URL+"/dir")
	out := &syncbuffer.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _, _ = cmd.Process.Wait() })
	return cmd, out
}

// A replica answers the challenges of another one, by each of the two ways.
func TestAnotherReplicaAnswersTheAuthority(t *testing.T) {
	t.Parallel()
	for way, off := range map[string][2]bool{"HTTP-01": {false, true}, "TLS-ALPN-01": {true, false}} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			host := hostOf(t)
			ca, at := newAuthority(t, 30*day), databases["SQLite"](t)
			ca.httpOff, ca.tlsOff = off[0], off[1]
			var log syncbuffer.Buffer
			k := replica(t, ca.config(host), open(t, at), &clock{}, &log)
			ca.answers(t, k)
			cmd, out := process(t, ca, at, host)
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v\n%s\n%s", err, tail(out.String()), tail(log.String()))
			}
			if k.Look(t.Context()); shows(t, k, host) == nil || ca.orders.Load() > 2 {
				t.Errorf("%v is presented after %d orders", shows(t, k, host), ca.orders.Load())
			}
		})
	}
}

// A replica that is killed while it has a certificate is followed by another one, after the time of its lock and of an
// attempt that fails.
func TestAReplicaIsKilledInAnOrder(t *testing.T) {
	t.Parallel()
	host := hostOf(t)
	ca, at, c := newAuthority(t, 30*day), databases["SQLite"](t), &clock{}
	var log syncbuffer.Buffer
	k := replica(t, ca.config(host), open(t, at), c, &log)
	ca.answers(t, k)
	held := make(chan struct{})
	ca.finalize.Store(&held)
	cmd, out := process(t, ca, at, host)
	select {
	case <-ca.finalizing:
	case <-time.After(5 * time.Minute):
		t.Fatalf("no order came to its end\n%s", tail(out.String()))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	ca.finalize.Store(nil)
	close(held)
	if k.Look(t.Context()); shows(t, k, host) != nil || ca.orders.Load() != 1 {
		t.Fatal("another replica was at it at once")
	}
	c.advance(2 * time.Minute)
	if k.Look(t.Context()); shows(t, k, host) == nil || ca.orders.Load() != 2 {
		t.Errorf("%v is presented after %d orders\n%s", shows(t, k, host), ca.orders.Load(), tail(log.String()))
	}
}
