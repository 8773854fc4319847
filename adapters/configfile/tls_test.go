package configfile_test

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"agentproxy/adapters/configfile"
)

func TestCertificates(t *testing.T) {
	const cert, key = "AGENTPROXY_TLS_CERT", "AGENTPROXY_TLS_KEY"
	files := map[string]string{cert: "/tls.crt", key: "/tls.key"}
	with := func(name, value string) map[string]string {
		set := maps.Clone(files)
		set[name] = value
		return set
	}
	for name, tc := range map[string]struct {
		set   map[string]string
		want  configfile.TLSSettings
		url   string
		fault string
	}{
		"none":                         {nil, configfile.TLSSettings{}, "http://127.0.0.1:8080", ""},
		"files":                        {files, configfile.TLSSettings{CertFile: "/tls.crt", KeyFile: "/tls.key", API: true}, "https://127.0.0.1:8080", ""},
		"files, the API without TLS":   {with("AGENTPROXY_HTTP_TLS", "false"), configfile.TLSSettings{CertFile: "/tls.crt", KeyFile: "/tls.key"}, "http://127.0.0.1:8080", ""},
		"files, the gateway refuses":   {with("AGENTPROXY_GATEWAY_PLAINTEXT", "refuse"), configfile.TLSSettings{CertFile: "/tls.crt", KeyFile: "/tls.key", API: true, RefusePlaintext: true}, "https://127.0.0.1:8080", ""},
		"files, another word":          {with("AGENTPROXY_GATEWAY_PLAINTEXT", "never"), configfile.TLSSettings{}, "", "AGENTPROXY_GATEWAY_PLAINTEXT: must be one of allow, refuse"},
		"a certificate alone":          {map[string]string{cert: "/tls.crt"}, configfile.TLSSettings{}, "", "AGENTPROXY_TLS_KEY: is missing"},
		"a key alone":                  {map[string]string{key: "/tls.key"}, configfile.TLSSettings{}, "", "AGENTPROXY_TLS_CERT: is missing"},
		"a fault of the files":         {with(cert, "/bad.crt"), configfile.TLSSettings{}, "", "AGENTPROXY_TLS_CERT: has expired"},
		"none, the gateway refuses":    {map[string]string{"AGENTPROXY_GATEWAY_PLAINTEXT": "refuse"}, configfile.TLSSettings{}, "", "AGENTPROXY_GATEWAY_PLAINTEXT: refuses every client"},
		"none, the API uses TLS alone": {map[string]string{"AGENTPROXY_HTTP_TLS": "true"}, configfile.TLSSettings{}, "", "AGENTPROXY_HTTP_TLS: needs a certificate"},
		"a redirect":                   {with("AGENTPROXY_HTTP_REDIRECT_ADDR", ":80"), configfile.TLSSettings{CertFile: "/tls.crt", KeyFile: "/tls.key", API: true, RedirectAddr: ":80"}, "https://127.0.0.1:8080", ""},
		"a redirect to plain text":     {map[string]string{"AGENTPROXY_HTTP_REDIRECT_ADDR": ":80"}, configfile.TLSSettings{}, "", "AGENTPROXY_HTTP_REDIRECT_ADDR: redirects to an API with TLS"},
		"an authority": {map[string]string{"AGENTPROXY_ACME_HOSTS": "Gw.example.com, api.example.com", "AGENTPROXY_ACME_EMAIL": "ops@example.com", "AGENTPROXY_ACME_DIRECTORY_URL": "https://ca.example.com/dir"},
			configfile.TLSSettings{Hosts: []string{"gw.example.com", "api.example.com"}, Email: "ops@example.com", DirectoryURL: "https://ca.example.com/dir", API: true}, "https://127.0.0.1:8080", ""},
		"an authority and files":        {with("AGENTPROXY_ACME_HOSTS", "gw.example.com"), configfile.TLSSettings{}, "", "AGENTPROXY_ACME_HOSTS: and AGENTPROXY_TLS_CERT are two"},
		"a wildcard":                    {map[string]string{"AGENTPROXY_ACME_HOSTS": "*.example.com"}, configfile.TLSSettings{}, "", "AGENTPROXY_ACME_HOSTS: \"*.example.com\" is not a host name"},
		"an address":                    {map[string]string{"AGENTPROXY_ACME_HOSTS": "203.0.113.7"}, configfile.TLSSettings{}, "", "AGENTPROXY_ACME_HOSTS: \"203.0.113.7\" is not a host name"},
		"a host twice":                  {map[string]string{"AGENTPROXY_ACME_HOSTS": "a.test,A.test"}, configfile.TLSSettings{}, "", "AGENTPROXY_ACME_HOSTS: has \"a.test\" twice"},
		"an authority on loopback":      {map[string]string{"AGENTPROXY_ACME_HOSTS": "a.test", "AGENTPROXY_ACME_DIRECTORY_URL": "https://127.0.0.1:14000/dir"}, configfile.TLSSettings{}, "", "AGENTPROXY_ACME_DIRECTORY_URL: must be an https URL"},
		"an authority without TLS":      {map[string]string{"AGENTPROXY_ACME_HOSTS": "a.test", "AGENTPROXY_ACME_DIRECTORY_URL": "http://ca.example.com/dir"}, configfile.TLSSettings{}, "", "AGENTPROXY_ACME_DIRECTORY_URL: must be an https URL"},
		"an address of mail alone":      {map[string]string{"AGENTPROXY_ACME_EMAIL": "ops@example.com"}, configfile.TLSSettings{}, "", "AGENTPROXY_ACME_EMAIL: is of no use"},
		"none, the API uses plain HTTP": {map[string]string{"AGENTPROXY_HTTP_TLS": "false"}, configfile.TLSSettings{}, "http://127.0.0.1:8080", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range tc.set {
				t.Setenv(k, v)
			}
			r := rules()
			r.Certificate = func(certFile, _ string) error {
				if certFile == "/bad.crt" {
					return errors.New("has expired")
				}
				return nil
			}
			s, err := configfile.Load(r)
			if tc.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fault) {
					t.Errorf("%v, want %q", err, tc.fault)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(s.TLS, tc.want) || s.PublicURL != tc.url {
				t.Errorf("%+v and %s, %v; want %+v and %s", s.TLS, s.PublicURL, err, tc.want, tc.url)
			}
			if s.Dev == s.TLS.Certificate() {
				t.Errorf("development mode is implied: %v", s.Dev)
			}
		})
	}
}
