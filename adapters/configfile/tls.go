package configfile

// TLSConfig holds the settings of the certificate, which the gateway and the API present.
type TLSConfig struct {
	// File with the certificate that the gateway and the API present, and those of its issuers behind it, as PEM. It
	// and the key are read again within a minute after they change; a pair that has a fault is logged, and the old
	// one stays.
	TLSCert string `yaml:"tls_cert" env:"AGENTPROXY_TLS_CERT"`
	// File with the private key of that certificate, as PEM.
	TLSKey string `yaml:"tls_key" env:"AGENTPROXY_TLS_KEY"`
	// Whether the API, with the console of agents, uses TLS where there is a certificate: TLS alone, and plain text is
	// answered 426. `false` leaves TLS to a reverse proxy in front of it.
	HTTPTLS *bool `yaml:"http_tls" env:"AGENTPROXY_HTTP_TLS" default:"true with a certificate"`
	// `allow`, or `refuse`: clients of the gateway without TLS are refused before their credential is read. Needs a
	// certificate.
	GatewayPlaintext string `yaml:"gateway_plaintext" env:"AGENTPROXY_GATEWAY_PLAINTEXT" default:"allow"`
}

// TLSSettings is a TLSConfig that was checked.
type TLSSettings struct {
	CertFile, KeyFile string // empty: none
	API               bool   // the API uses TLS
	RefusePlaintext   bool   // the gateway refuses clients without TLS
}

// Certificate reports whether the service has a certificate.
func (s TLSSettings) Certificate() bool { return s.CertFile != "" }

// certificate reports whether settings ask for a certificate.
func (t TLSConfig) certificate() bool { return t.TLSCert != "" || t.TLSKey != "" }

// tls checks the certificate and who uses TLS.
func (c *check) tls(t TLSConfig) TLSSettings {
	s := TLSSettings{CertFile: t.TLSCert, KeyFile: t.TLSKey}
	switch {
	case t.TLSCert == "" && t.TLSKey != "":
		c.fault("AGENTPROXY_TLS_CERT", "is missing: AGENTPROXY_TLS_KEY is of no use without it")
	case t.TLSKey == "" && t.TLSCert != "":
		c.fault("AGENTPROXY_TLS_KEY", "is missing: AGENTPROXY_TLS_CERT is of no use without it")
	case t.TLSCert != "" && c.rules.Certificate != nil:
		if err := c.rules.Certificate(t.TLSCert, t.TLSKey); err != nil {
			c.fault("AGENTPROXY_TLS_CERT", "%v", err)
		}
	}
	s.API = t.certificate() && (t.HTTPTLS == nil || *t.HTTPTLS)
	if t.HTTPTLS != nil && *t.HTTPTLS && !t.certificate() {
		c.fault("AGENTPROXY_HTTP_TLS", "needs a certificate: AGENTPROXY_TLS_CERT and AGENTPROXY_TLS_KEY")
	}
	if t.GatewayPlaintext != "" {
		plaintext := c.oneOf("AGENTPROXY_GATEWAY_PLAINTEXT", t.GatewayPlaintext, "allow", "refuse")
		s.RefusePlaintext = plaintext == "refuse"
	}
	if s.RefusePlaintext && !t.certificate() {
		c.fault("AGENTPROXY_GATEWAY_PLAINTEXT", "refuses every client: there is no certificate for TLS; set "+
			"AGENTPROXY_TLS_CERT and AGENTPROXY_TLS_KEY")
	}
	return s
}
