package configfile_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentproxy/adapters/configfile"
	"agentproxy/domain"
	"agentproxy/domain/session"
)

// clean unsets every variable of the service for one test.
func clean(t *testing.T) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AGENTPROXY_") {
			t.Setenv(name, "") // restores it afterwards
			os.Unsetenv(name)
		}
	}
}

func TestDefaultsAreDevelopmentMode(t *testing.T) {
	clean(t)
	s, err := configfile.Load(rules())
	if err != nil {
		t.Fatal(err)
	}
	if !s.Dev || s.RegisterLimit != 0 || s.RateLimit != 600 || s.TrialBalance != 10*domain.Dollar ||
		s.PublicHost != "127.0.0.1" || s.PublicPort != 8081 || s.PublicURL != "http://127.0.0.1:8080" {
		t.Errorf("defaults are %+v", s)
	}
}

func TestDevelopmentModeEndsWhenAgentsComeFromElsewhere(t *testing.T) {
	for name, env := range map[string][2]string{
		"a public gateway":   {"AGENTPROXY_PUBLIC_GATEWAY", "proxy.example:8081"},
		"a trusted proxy":    {"AGENTPROXY_TRUSTED_PROXIES", "10.0.0.0/8"},
		"an API on a LAN":    {"AGENTPROXY_HTTP_ADDR", "192.168.1.2:8080"},
		"a public API":       {"AGENTPROXY_PUBLIC_URL", "https://api.example"},
		"real payments":      {"AGENTPROXY_TRON_XPUB", xpub},
		"PostgreSQL":         {"AGENTPROXY_DATABASE_URL", "postgres://db/agentproxy"},
		"a variable":         {"AGENTPROXY_DEV", "false"},
		"a gateway on a LAN": {"AGENTPROXY_GATEWAY_ADDR", "192.168.1.2:8081"},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			t.Setenv(env[0], env[1])
			t.Setenv("AGENTPROXY_SECRET", "for-tests-only-0123456789abcdefghijklmnop")
			s, err := configfile.Load(rules())
			if err != nil || s.Dev || s.RegisterLimit != 120 {
				t.Errorf("dev %v, %d registrations a minute, %v", s.Dev, s.RegisterLimit, err)
			}
		})
	}
}

func TestDevelopmentModeIsKeptByAVariable(t *testing.T) {
	clean(t)
	t.Setenv("AGENTPROXY_DEV", "true")
	t.Setenv("AGENTPROXY_PUBLIC_URL", "https://api.example")
	if s, err := configfile.Load(rules()); err != nil || !s.Dev {
		t.Errorf("dev %v, %v", s.Dev, err)
	}
}

func TestTheProxyProtocolNeedsTrustedProxies(t *testing.T) {
	clean(t)
	t.Setenv("AGENTPROXY_PROXY_PROTOCOL", "true")
	if _, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "AGENTPROXY_PROXY_PROTOCOL: needs AGENTPROXY_TRUSTED_PROXIES") {
		t.Errorf("without trusted proxies: %v", err)
	}
	t.Setenv("AGENTPROXY_TRUSTED_PROXIES", "10.0.0.9")
	if s, err := configfile.Load(rules()); err != nil || !s.ProxyProtocol {
		t.Errorf("%v, %v", s.ProxyProtocol, err)
	}
}

// The manifest of Kubernetes is refused until its placeholder was replaced.
func TestThePlaceholderOfTheManifestIsRefused(t *testing.T) {
	clean(t)
	b, err := os.ReadFile("../../deploy/kubernetes/agentproxy.env")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(b), "\nAGENTPROXY_TRUSTED_PROXIES=")
	value, _, _ := strings.Cut(line, "\n")
	t.Setenv("AGENTPROXY_TRUSTED_PROXIES", value)
	if _, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "AGENTPROXY_TRUSTED_PROXIES: has the placeholder") {
		t.Errorf("with %q: %v", value, err)
	}
	t.Setenv("AGENTPROXY_TRUSTED_PROXIES", "10.0.3.7")
	if _, err := configfile.Load(rules()); err != nil {
		t.Error(err)
	}
}

func TestVariablesWinOverTheFile(t *testing.T) {
	clean(t)
	file := filepath.Join(t.TempDir(), "agentproxy.yaml")
	if err := os.WriteFile(file, []byte("session_limit: 7\ntrial_days: 3\nexits: [127.0.0.5]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AGENTPROXY_CONFIG", file)
	t.Setenv("AGENTPROXY_TRIAL_DAYS", "4")
	s, err := configfile.Load(rules())
	if err != nil || s.SessionLimit != 7 || s.TrialDays != 4 || len(s.Exits) != 1 {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestContactBecomesAURI(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "abuse@shop.example": "mailto:abuse@shop.example", "mailto:abuse@shop.example": "mailto:abuse@shop.example",
		"https://shop.example/abuse": "https://shop.example/abuse", "tel:+49-30-1234": "tel:+49-30-1234",
	} {
		clean(t)
		t.Setenv("AGENTPROXY_ABUSE_CONTACT", text)
		if s, err := configfile.Load(rules()); err != nil || s.AbuseContact != want {
			t.Errorf("%q becomes %q, %v", text, s.AbuseContact, err)
		}
	}
	for _, text := range []string{"abuse", "http://shop.example", "https://", "https://user:pw@shop.example/", "mailto:", "tel:", "javascript:alert(1)",
		"Abuse <abuse@shop.example>", "abuse@shop.example\nExpires: never", "https://shop.example/\nContact: other", "https://shop.example/a b"} {
		clean(t)
		t.Setenv("AGENTPROXY_ABUSE_CONTACT", text)
		if s, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "AGENTPROXY_ABUSE_CONTACT: must be") {
			t.Errorf("%q becomes %q, %v", text, s.AbuseContact, err)
		}
	}
}

func TestEveryFaultIsListed(t *testing.T) {
	clean(t)
	for name, value := range map[string]string{
		"AGENTPROXY_HTTP_ADDR": "nowhere", "AGENTPROXY_ADMIN_ADDR": "8082", "AGENTPROXY_GATEWAY_ADDR": "1.2.3.4", "AGENTPROXY_PUBLIC_GATEWAY": "host",
		"AGENTPROXY_DATABASE_URL": "mysql://user:hunter2@host/db", "AGENTPROXY_EXITS": "127.0.0.2,elsewhere",
		"AGENTPROXY_ALLOW_NETWORKS": "10.0.0.0/99", "AGENTPROXY_TRIAL_BALANCE": "ten", "AGENTPROXY_LOG_LEVEL": "loud",
		"AGENTPROXY_WEBHOOK_ALLOW_NETWORKS": "10.0.0.0/8,hooks",
		"AGENTPROXY_SECRET":                 "short", "AGENTPROXY_SESSION_LIMIT": "-1", "AGENTPROXY_PUBLIC_URL": "ftp://x",
	} {
		t.Setenv(name, value)
	}
	_, err := configfile.Load(rules())
	if err == nil {
		t.Fatal("accepted")
	}
	for _, name := range []string{"HTTP_ADDR", "ADMIN_ADDR", "GATEWAY_ADDR", "PUBLIC_GATEWAY", "DATABASE_URL", "EXITS", "ALLOW_NETWORKS", "WEBHOOK_ALLOW_NETWORKS",
		"TRIAL_BALANCE", "LOG_LEVEL", "SECRET", "SESSION_LIMIT", "PUBLIC_URL"} {
		if !strings.Contains(err.Error(), "AGENTPROXY_"+name+":") {
			t.Errorf("the error does not name %s:\n%v", name, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "short") {
		t.Errorf("the error shows a secret:\n%v", err)
	}
}

func TestPostgresNeedsASecretAndHidesItsURL(t *testing.T) {
	clean(t)
	t.Setenv("AGENTPROXY_DATABASE_URL", "postgresql://eve:hunter2@db/agentproxy")
	if _, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "AGENTPROXY_SECRET") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("without a secret: %v", err)
	}
	t.Setenv("AGENTPROXY_SECRET", "0123456789abcdefghijklmnopqrstuvwxyz")
	s, err := configfile.Load(rules())
	if err != nil || s.DatabaseURL == "" || s.DatabasePath != "" || s.DatabaseConns != 20 {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, s); strings.Contains(text, "hunter2") {
			t.Errorf("%s shows the password", format)
		}
	}
	t.Setenv("AGENTPROXY_DATABASE_MAX_CONNS", "3")
	if _, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "AGENTPROXY_DATABASE_MAX_CONNS") {
		t.Errorf("three connections: %v", err)
	}
}

func TestTheFileIsReadStrictly(t *testing.T) {
	clean(t)
	file := filepath.Join(t.TempDir(), "agentproxy.yaml")
	if err := os.WriteFile(file, []byte("sesion_limit: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AGENTPROXY_CONFIG", file)
	if _, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "sesion_limit") {
		t.Errorf("a misspelt key: %v", err)
	}
}

func TestAnUnspecifiedGatewayNeedsAPublicName(t *testing.T) {
	clean(t)
	t.Setenv("AGENTPROXY_GATEWAY_ADDR", "0.0.0.0:8081")
	if _, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "AGENTPROXY_PUBLIC_GATEWAY") {
		t.Errorf("got %v", err)
	}
}

func TestAnUnspecifiedAPINeedsAPublicURL(t *testing.T) {
	clean(t)
	for _, addr := range []string{"0.0.0.0:8080", "[::]:8080"} {
		t.Setenv("AGENTPROXY_HTTP_ADDR", addr)
		t.Setenv("AGENTPROXY_PUBLIC_URL", "")
		if _, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "AGENTPROXY_PUBLIC_URL: is required") {
			t.Errorf("%s: %v", addr, err)
		}
		t.Setenv("AGENTPROXY_PUBLIC_URL", "https://api.shop.example")
		if s, err := configfile.Load(rules()); err != nil || s.PublicURL != "https://api.shop.example" {
			t.Errorf("%s: %s, %v", addr, s.PublicURL, err)
		}
	}
}

func TestRealPaymentsInDevelopmentModeAreWarnedOf(t *testing.T) {
	clean(t)
	t.Setenv("AGENTPROXY_TRON_XPUB", xpub)
	for dev, want := range map[string]bool{"true": true, "false": false} {
		t.Setenv("AGENTPROXY_DEV", dev)
		s, err := configfile.Load(rules())
		if err != nil {
			t.Fatal(err)
		}
		if warned := slices.ContainsFunc(s.Warnings, func(f configfile.Fault) bool { return f.Path == "AGENTPROXY_DEV" }); warned != want {
			t.Errorf("dev %s: %v", dev, s.Warnings)
		}
	}
}

func TestExitsDeclareTheirPlaces(t *testing.T) {
	clean(t)
	t.Setenv("AGENTPROXY_EXITS", "203.0.113.7@DE/berlin, 203.0.113.8@US,2001:db8::1")
	s, err := configfile.Load(rules())
	if err != nil {
		t.Fatal(err)
	}
	want := []configfile.Exit{
		{Addr: netip.MustParseAddr("203.0.113.7"), Place: session.Location{Country: "DE", City: "berlin"}},
		{Addr: netip.MustParseAddr("203.0.113.8"), Place: session.Location{Country: "US"}},
		{Addr: netip.MustParseAddr("2001:db8::1")},
	}
	if !slices.Equal(s.Exits, want) {
		t.Errorf("the exits are %+v", s.Exits)
	}
	for value, word := range map[string]string{"203.0.113.7@": "place", "203.0.113.7@de": "place", "203.0.113.7@Germany": "place",
		"203.0.113.7@DE/": "city", "203.0.113.7@DE/new york": "city", "host@DE": "IP address"} {
		t.Setenv("AGENTPROXY_EXITS", value)
		if _, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "AGENTPROXY_EXITS") || !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestTheNameOfTheShop(t *testing.T) {
	for text, want := range map[string]string{" Proxies of Anna ": "Proxies of Anna", "Прокси": "Прокси"} {
		clean(t)
		t.Setenv("AGENTPROXY_SHOP_NAME", text)
		if s, err := configfile.Load(rules()); err != nil || s.ShopName != want {
			t.Errorf("%q becomes %q, %v", text, s.ShopName, err)
		}
	}
	clean(t)
	if s, err := configfile.Load(rules()); err != nil || s.ShopName != "agentproxy" {
		t.Errorf("the default is %q, %v", s.ShopName, err)
	}
	for _, text := range []string{" ", strings.Repeat("x", 61), "a\nb", "a\u202eb"} {
		clean(t)
		t.Setenv("AGENTPROXY_SHOP_NAME", text)
		if _, err := configfile.Load(rules()); err == nil || !strings.Contains(err.Error(), "AGENTPROXY_SHOP_NAME: must have") {
			t.Errorf("%q is taken: %v", text, err)
		}
	}
}
