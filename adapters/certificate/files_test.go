package certificate_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/certificate"
)

var start = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// pair returns a certificate of a name that is valid for a day from a time, and its key, as PEM.
func pair(t *testing.T, name string, from time.Time) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(from.Unix()), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name}, NotBefore: from, NotAfter: from.Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// folder is a folder with cert.pem and key.pem.
type folder string

func (f folder) config() certificate.Config {
	return certificate.Config{CertFile: filepath.Join(string(f), "cert.pem"), KeyFile: filepath.Join(string(f), "key.pem")}
}

// write replaces the files; nil leaves one as it is.
func (f folder) write(t *testing.T, cert, key []byte) {
	t.Helper()
	for name, text := range map[string][]byte{f.config().CertFile: cert, f.config().KeyFile: key} {
		if text == nil {
			continue
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// presented returns the name of the certificate that a handshake gets.
func presented(t *testing.T, k *certificate.Keeper) string {
	t.Helper()
	c, err := k.TLS().GetCertificate(&tls.ClientHelloInfo{ServerName: "any.test"})
	if err != nil {
		t.Fatal(err)
	}
	return c.Leaf.DNSNames[0]
}

func TestFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	now := start
	var log bytes.Buffer
	f := folder(t.TempDir())
	cert, key := pair(t, "one.test", start)
	f.write(t, cert, key)
	k, err := certificate.New(f.config(), certificate.Deps{Now: func() time.Time { return now },
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	faults := func() int { return strings.Count(log.String(), "level=ERROR") }
	two, twoKey := pair(t, "two.test", start)
	old, oldKey := pair(t, "old.test", start.Add(-48*time.Hour))
	for _, step := range []struct {
		what      string
		cert, key []byte
		want      string
		faults    int
	}{
		{"nothing", nil, nil, "one.test", 0},
		{"the certificate alone, as between two writes", two, nil, "one.test", 1},
		{"nothing since", nil, nil, "one.test", 1},
		{"its key too", nil, twoKey, "two.test", 1},
		{"text that is no certificate", []byte("none"), nil, "two.test", 2},
		{"one that has expired", old, oldKey, "two.test", 3},
		{"the first again", cert, key, "one.test", 3},
	} {
		f.write(t, step.cert, step.key)
		k.Look(t.Context())
		k.Look(t.Context())
		if got := presented(t, k); got != step.want || faults() != step.faults {
			t.Errorf("%s was written: %s is presented and %d faults are logged, want %s and %d", step.what, got, faults(),
				step.want, step.faults)
		}
	}
	if err := os.Remove(f.config().KeyFile); err != nil {
		t.Fatal(err)
	}
	k.Look(t.Context())
	if got := presented(t, k); got != "one.test" || faults() != 4 {
		t.Errorf("without the key %s is presented and %d faults are logged", got, faults())
	}
	if text := string(key); strings.Contains(log.String(), strings.Split(text, "\n")[1]) {
		t.Error("the log has the key")
	}
}

func TestFilesAtTheStart(t *testing.T) {
	t.Parallel()
	cert, key := pair(t, "one.test", start)
	_, other := pair(t, "two.test", start)
	for name, tc := range map[string]struct {
		cert, key []byte
		now       time.Time
		want      string
	}{
		"a pair":                    {cert, key, start, ""},
		"it expires now":            {cert, key, start.Add(24 * time.Hour), ""},
		"it has expired":            {cert, key, start.Add(24*time.Hour + time.Second), "has expired at 2026-11-28T12:00:00Z"},
		"the key of another one":    {cert, other, start, "private key does not match public key"},
		"no key in the file":        {cert, cert, start, "found a certificate rather than a key"},
		"the key file is missing":   {cert, nil, start, "key.pem: no such file"},
		"the certificate is absent": {nil, key, start, "cert.pem: no such file"},
	} {
		f := folder(t.TempDir())
		f.write(t, tc.cert, tc.key)
		_, err := certificate.New(f.config(), certificate.Deps{Now: func() time.Time { return tc.now }})
		checked := certificate.Check(f.config().CertFile, f.config().KeyFile, tc.now)
		if tc.want == "" {
			if err != nil || checked != nil {
				t.Errorf("%s: %v, %v", name, err, checked)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || checked == nil || checked.Error() != err.Error() {
			t.Errorf("%s: %v and %v, want %q", name, err, checked, tc.want)
		}
	}
	if k, err := certificate.New(certificate.Config{}, certificate.Deps{}); k != nil || err != nil || k.TLS() != nil {
		t.Errorf("without files there is %v, %v", k, err)
	}
}

// TestAFaultOfTheFilesIsAMetric reads the gauge while a pair is broken and after it was mended.
func TestAFaultOfTheFilesIsAMetric(t *testing.T) {
	t.Parallel()
	cert, key := pair(t, "one.test", start)
	_, other := pair(t, "two.test", start)
	f := folder(t.TempDir())
	f.write(t, cert, key)
	registry := prometheus.NewRegistry()
	k, err := certificate.New(f.config(), certificate.Deps{Now: func() time.Time { return start }, Metrics: registry})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		key  []byte
		want float64
	}{{key, 0}, {other, 1}, {key, 0}} {
		f.write(t, nil, step.key)
		k.Look(t.Context())
		if err := k.Start(); err != nil { // it looks too, and finds nothing new
			t.Fatal(err)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, family := range families {
			if family.GetName() == "agentproxy_certificate_files_fault" {
				found = true
				if got := family.GetMetric()[0].GetGauge().GetValue(); got != step.want {
					t.Errorf("the gauge is %v, want %v", got, step.want)
				}
			}
		}
		if !found {
			t.Error("there is no gauge")
		}
		k.Stop()
	}
}
