package configfile_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentproxy/adapters/configfile"
)

// TestOneProgramHasTLSAndNothingBeforeIt loads what the deployment files with TLS set.
func TestOneProgramHasTLSAndNothingBeforeIt(t *testing.T) {
	file := func(name string) string {
		b, err := os.ReadFile("../../deploy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	set := regexp.MustCompile(`(?m)^\s*(?:- )?(AGENTPROXY_[A-Z_]+)(?:=|: )(.*)$`)
	hosts := regexp.MustCompile(`\$\{(API|GATEWAY)_HOST[^}]*\}`)
	for name, texts := range map[string][]string{
		"systemd":    {file("systemd/agentproxy.env.example")},
		"compose":    {file("compose/single.yaml")},
		"kubernetes": {file("kubernetes/agentproxy.env"), file("kubernetes/tls/kustomization.yaml")}, // the latter is merged
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			for _, text := range texts {
				for _, m := range set.FindAllStringSubmatch(text, -1) {
					value := hosts.ReplaceAllStringFunc(m[2], func(v string) string {
						return strings.ToLower(hosts.FindStringSubmatch(v)[1]) + ".example.com"
					})
					if strings.HasPrefix(value, "${") { // of the user's, without which it is empty
						value = ""
					}
					value, _, _ = strings.Cut(value, " #")
					t.Setenv(m[1], strings.Trim(value, `"`))
				}
			}
			t.Setenv("AGENTPROXY_SECRET", "for-tests-only-0123456789abcdefghijklmnop")
			if name == "kubernetes" { // the secret has it
				t.Setenv("AGENTPROXY_DATABASE_URL", "postgres://db/agentproxy?sslmode=verify-full")
			}
			s, err := configfile.Load(rules())
			if err != nil {
				t.Fatal(err)
			}
			if !s.TLS.API || s.TLS.RedirectAddr == "" || s.PublicURL != "https://api.example.com" || len(s.TrustedProxies) > 0 || s.Dev ||
				!slices.Contains(s.TLS.Hosts, "api.example.com") || !slices.Contains(s.TLS.Hosts, s.PublicHost) {
				t.Errorf("%+v, public URL %s, gateway %s, trusted proxies %v, development %v", s.TLS, s.PublicURL, s.PublicHost,
					s.TrustedProxies, s.Dev)
			}
		})
	}
}
