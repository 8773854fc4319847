package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/cmd/internal/doctor"
	"agentproxy/test/fake/seller"
)

// examined runs doctor and returns its findings as "level check".
func examined(t *testing.T, want int) (list []string, out string) {
	t.Helper()
	status, out, errOut := command("--json", "doctor")
	var result struct {
		OK       bool
		Findings []doctor.Finding
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || status != want || result.OK != (want == 0) {
		t.Fatalf("%d: %v: %s%s", status, err, out, errOut)
	}
	for _, f := range result.Findings {
		if f.Level != doctor.OK {
			list = append(list, string(f.Level)+" "+f.Check)
		}
	}
	return list, out
}

// opened configures a service that may be opened, with a database.
func opened(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{"HTTP_ADDR": "127.0.0.1:8080", "GATEWAY_ADDR": "0.0.0.0:8081", "PUBLIC_GATEWAY": "gate.shop.example:8081",
		"PUBLIC_URL": "https://api.shop.example", "TRUSTED_PROXIES": "127.0.0.1", "DEV": "false", "AGENT_CONNECTIONS": "5",
		"DATABASE_URL": "sqlite://service.db", "TLS_CERT": "cert.pem", "TLS_KEY": "key.pem", "HTTP_TLS": "false"} {
		t.Setenv("AGENTPROXY_"+name, value)
	}
	certify(t)
	if status, _, errOut := command("migrate"); status != 0 {
		t.Fatal(errOut)
	}
}

// certify writes a certificate for the gateway.
func certify(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	draft := x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"gate.shop.example"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(90 * 24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, &draft, &draft, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDoctorOfALaptopHasErrors(t *testing.T) {
	configure(t, "")
	list, _ := examined(t, 1)
	for _, want := range []string{"error development_mode", "error public_url", "error public_gateway", "warning database"} {
		if !slices.Contains(list, want) {
			t.Errorf("%q is not among %q", want, list)
		}
	}
	status, out, errOut := command("doctor")
	if status != 1 || !strings.HasPrefix(out, "error    Development mode is on.\n         why: ") || !strings.Contains(errOut, "to mend before strangers may come") {
		t.Errorf("%d: %s%s", status, out, errOut)
	}
	if _, err := os.Stat("nowhere"); err == nil {
		t.Error("it made a database")
	}
}

func TestDoctorOfAServiceThatMayBeOpened(t *testing.T) {
	s := started(t)
	opened(t)
	list, out := examined(t, 0)
	if !slices.Contains(list, "warning backup") || !slices.Contains(list, "warning payments") {
		t.Errorf("found %q", list)
	}
	secret, err := os.ReadFile("service.db.secret")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"key654", strings.TrimSpace(string(secret))} {
		if strings.Contains(out, text) {
			t.Error("a secret is printed")
		}
	}
	t.Run("a backup is known", func(t *testing.T) {
		if status, _, errOut := command("backup", "copy.db"); status != 0 {
			t.Fatal(errOut)
		}
		if list, _ := examined(t, 0); slices.Contains(list, "warning backup") {
			t.Errorf("found %q", list)
		}
	})
	t.Run("a provider that refuses its credential is an error", func(t *testing.T) {
		s.Next("/balance", seller.Expired)
		if list, _ := examined(t, 1); !slices.Contains(list, "error provider") {
			t.Errorf("found %q", list)
		}
	})
	t.Run("a database that others may read is an error", func(t *testing.T) {
		if err := os.Chmod("service.db", 0o644); err != nil {
			t.Fatal(err)
		}
		if list, _ := examined(t, 1); !slices.Contains(list, "error file_modes") {
			t.Errorf("found %q", list)
		}
	})
	t.Run("a lost secret is an error and is not made anew", func(t *testing.T) {
		if err := os.Remove("service.db.secret"); err != nil {
			t.Fatal(err)
		}
		if list, _ := examined(t, 1); !slices.Contains(list, "error database") {
			t.Errorf("found %q", list)
		}
		if _, err := os.Stat("service.db.secret"); err == nil {
			t.Error("a secret was made")
		}
	})
}

func TestDoctorListsTheFaultsOfTheConfiguration(t *testing.T) {
	configure(t, "trial_days: 0\n")
	list, out := examined(t, 1)
	if len(list) != 1 || list[0] != "error configuration" || !strings.Contains(out, "config.yaml:1: trial_days: must be 1 or more") {
		t.Errorf("found %q: %s", list, out)
	}
}
