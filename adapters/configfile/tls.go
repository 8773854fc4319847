package configfile

import (
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// TLSConfig holds the settings of the certificate, which the gateway and the API present.
type TLSConfig struct {
	// File with the certificate that the gateway and the API present, and those of its issuers behind it, as PEM. It
	// and the key are read again within a minute after they change; a pair that has a fault is logged, and the old
	// one stays.
	TLSCert string `yaml:"tls_cert" env:"AGENTPROXY_TLS_CERT"`
	// File with the private key of that certificate, as PEM.
	TLSKey string `yaml:"tls_key" env:"AGENTPROXY_TLS_KEY"`
	// Names that certificates are had for by ACME, in place of files: those by which agents reach the gateway and the
	// API. The first one's is presented to clients that name no other. Setting it agrees to the terms of the authority.
	ACMEHosts []string `yaml:"acme_hosts" env:"AGENTPROXY_ACME_HOSTS"`
	// Where the authority writes to about these certificates.
	ACMEEmail string `yaml:"acme_email" env:"AGENTPROXY_ACME_EMAIL"`
	// Directory of the authority, an https URL.
	ACMEDirectoryURL string `yaml:"acme_directory_url" env:"AGENTPROXY_ACME_DIRECTORY_URL" default:"that of Let's Encrypt"`
	// Whether the API, with the console of agents, uses TLS where there is a certificate: TLS alone, and plain text is
	// answered 426. `false` leaves TLS to a reverse proxy in front of it.
	HTTPTLS *bool `yaml:"http_tls" env:"AGENTPROXY_HTTP_TLS" default:"true with a certificate"`
	// Address on which requests in plain text are redirected to AGENTPROXY_PUBLIC_URL, such as 0.0.0.0:80. An authority
	// asks there too (HTTP-01). Needs an API with TLS.
	HTTPRedirectAddr string `yaml:"http_redirect_addr" env:"AGENTPROXY_HTTP_REDIRECT_ADDR"`
	// `allow`, or `refuse`: clients of the gateway without TLS are refused before their credential is read. Needs a
	// certificate.
	GatewayPlaintext string `yaml:"gateway_plaintext" env:"AGENTPROXY_GATEWAY_PLAINTEXT" default:"allow"`
}

// TLSSettings is a TLSConfig that was checked.
type TLSSettings struct {
	CertFile, KeyFile string   // empty: none
	Hosts             []string // of certificates of an authority; empty: none
	Email             string
	DirectoryURL      string // empty: Let's Encrypt
	API               bool   // the API uses TLS
	RedirectAddr      string // empty: none
	RefusePlaintext   bool   // the gateway refuses clients without TLS
}

// Certificate reports whether the service has a certificate.
func (s TLSSettings) Certificate() bool { return s.CertFile != "" || len(s.Hosts) > 0 }

// certificate reports whether settings ask for a certificate.
func (t TLSConfig) certificate() bool {
	return t.TLSCert != "" || t.TLSKey != "" || len(t.ACMEHosts) > 0
}

// needsCertificate ends the fault of a setting that is of no use without a certificate.
const needsCertificate = "set AGENTPROXY_TLS_CERT and AGENTPROXY_TLS_KEY, or AGENTPROXY_ACME_HOSTS"

// tls checks the certificate and who uses TLS.
func (c *check) tls(t TLSConfig) TLSSettings {
	s := TLSSettings{CertFile: t.TLSCert, KeyFile: t.TLSKey}
	switch {
	case t.TLSCert == "" && t.TLSKey != "":
		c.fault("AGENTPROXY_TLS_CERT", "is missing: AGENTPROXY_TLS_KEY is of no use without it")
	case t.TLSKey == "" && t.TLSCert != "":
		c.fault("AGENTPROXY_TLS_KEY", "is missing: AGENTPROXY_TLS_CERT is of no use without it")
	case t.TLSCert != "" && len(t.ACMEHosts) > 0:
		c.fault("AGENTPROXY_ACME_HOSTS", "and AGENTPROXY_TLS_CERT are two certificates for one purpose; unset one of them")
	case t.TLSCert != "" && c.rules.Certificate != nil:
		if err := c.rules.Certificate(t.TLSCert, t.TLSKey); err != nil {
			c.fault("AGENTPROXY_TLS_CERT", "%v", err)
		}
	}
	c.acme(&s, t)
	s.API = t.certificate() && (t.HTTPTLS == nil || *t.HTTPTLS)
	if t.HTTPTLS != nil && *t.HTTPTLS && !t.certificate() {
		c.fault("AGENTPROXY_HTTP_TLS", "needs a certificate: "+needsCertificate)
	}
	if s.RedirectAddr = t.HTTPRedirectAddr; s.RedirectAddr != "" {
		c.listener("AGENTPROXY_HTTP_REDIRECT_ADDR", s.RedirectAddr)
		if !s.API {
			c.fault("AGENTPROXY_HTTP_REDIRECT_ADDR", "redirects to an API with TLS, which there is not: "+needsCertificate)
		}
	}
	if t.GatewayPlaintext != "" {
		plaintext := c.oneOf("AGENTPROXY_GATEWAY_PLAINTEXT", t.GatewayPlaintext, "allow", "refuse")
		s.RefusePlaintext = plaintext == "refuse"
	}
	if s.RefusePlaintext && !t.certificate() {
		c.fault("AGENTPROXY_GATEWAY_PLAINTEXT", "refuses every client: there is no certificate for TLS; "+needsCertificate)
	}
	return s
}

// maxHosts is how many names have certificates: an authority gives out few in a week.
const maxHosts = 20

// acme checks whom certificates are had of, and for what.
func (c *check) acme(s *TLSSettings, t TLSConfig) {
	const hosts, mailbox, directory = "AGENTPROXY_ACME_HOSTS", "AGENTPROXY_ACME_EMAIL", "AGENTPROXY_ACME_DIRECTORY_URL"
	for _, text := range t.ACMEHosts {
		host := strings.ToLower(strings.TrimSpace(text))
		switch {
		case !isHost(host):
			c.fault(hosts, "%q is not a host name with a dot, such as proxy.example.com; there are no wildcards", text)
		case slices.Contains(s.Hosts, host):
			c.fault(hosts, "has %q twice", host)
		}
		s.Hosts = append(s.Hosts, host)
	}
	if len(s.Hosts) > maxHosts {
		c.fault(hosts, "must have at most %d names", maxHosts)
	}
	if s.Email = t.ACMEEmail; s.Email != "" {
		if a, err := mail.ParseAddress(s.Email); err != nil || a.Address != s.Email {
			c.fault(mailbox, "must be an e-mail address")
		}
	}
	if s.DirectoryURL = t.ACMEDirectoryURL; s.DirectoryURL != "" {
		u, err := url.Parse(s.DirectoryURL)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || isOwnHost(u.Hostname()) {
			c.fault(directory, "must be an https URL without user info, of a host that is neither on loopback nor private")
		}
	}
	for name, text := range map[string]string{mailbox: t.ACMEEmail, directory: t.ACMEDirectoryURL} {
		if text != "" && len(t.ACMEHosts) == 0 {
			c.fault(name, "is of no use without "+hosts)
		}
	}
}

// isHost reports whether a text is a name of the DNS with a dot, in lower case.
func isHost(text string) bool {
	if len(text) > 253 || !strings.Contains(text, ".") {
		return false
	}
	for _, label := range strings.Split(text, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	_, err := netip.ParseAddr(text)
	return err != nil
}

// isOwnHost reports whether a host is on loopback or in a private network by its text.
func isOwnHost(host string) bool {
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (at.Unmap().IsLoopback() || at.Unmap().IsPrivate() ||
		at.IsLinkLocalUnicast() || at.IsUnspecified())
}
