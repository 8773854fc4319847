package configfile_test

import (
	"errors"
	"maps"
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
		"none":                          {nil, configfile.TLSSettings{}, "http://127.0.0.1:8080", ""},
		"files":                         {files, configfile.TLSSettings{CertFile: "/tls.crt", KeyFile: "/tls.key", API: true}, "https://127.0.0.1:8080", ""},
		"files, the API without TLS":    {with("AGENTPROXY_HTTP_TLS", "false"), configfile.TLSSettings{CertFile: "/tls.crt", KeyFile: "/tls.key"}, "http://127.0.0.1:8080", ""},
		"files, the gateway refuses":    {with("AGENTPROXY_GATEWAY_PLAINTEXT", "refuse"), configfile.TLSSettings{CertFile: "/tls.crt", KeyFile: "/tls.key", API: true, RefusePlaintext: true}, "https://127.0.0.1:8080", ""},
		"files, another word":           {with("AGENTPROXY_GATEWAY_PLAINTEXT", "never"), configfile.TLSSettings{}, "", "AGENTPROXY_GATEWAY_PLAINTEXT: must be one of allow, refuse"},
		"a certificate alone":           {map[string]string{cert: "/tls.crt"}, configfile.TLSSettings{}, "", "AGENTPROXY_TLS_KEY: is missing"},
		"a key alone":                   {map[string]string{key: "/tls.key"}, configfile.TLSSettings{}, "", "AGENTPROXY_TLS_CERT: is missing"},
		"a fault of the files":          {with(cert, "/bad.crt"), configfile.TLSSettings{}, "", "AGENTPROXY_TLS_CERT: has expired"},
		"none, the gateway refuses":     {map[string]string{"AGENTPROXY_GATEWAY_PLAINTEXT": "refuse"}, configfile.TLSSettings{}, "", "AGENTPROXY_GATEWAY_PLAINTEXT: refuses every client"},
		"none, the API uses TLS alone":  {map[string]string{"AGENTPROXY_HTTP_TLS": "true"}, configfile.TLSSettings{}, "", "AGENTPROXY_HTTP_TLS: needs a certificate"},
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
			if err != nil || s.TLS != tc.want || s.PublicURL != tc.url {
				t.Errorf("%+v and %s, %v; want %+v and %s", s.TLS, s.PublicURL, err, tc.want, tc.url)
			}
			if s.Dev == s.TLS.Certificate() {
				t.Errorf("development mode is implied: %v", s.Dev)
			}
		})
	}
}
