package wire

import (
	"log/slog"

	"agentproxy/adapters/certificate"
	"agentproxy/adapters/configfile"
)

// newCertificate returns what keeps the certificate; nil if none is configured.
func newCertificate(s configfile.Settings, log *slog.Logger) (*certificate.Keeper, error) {
	return certificate.New(certificate.Config{CertFile: s.TLS.CertFile, KeyFile: s.TLS.KeyFile}, nil, log)
}
