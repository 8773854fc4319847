package wire

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"agentproxy/adapters/certificate"
	"agentproxy/adapters/configfile"
	"agentproxy/ports"
)

// newCertificate returns what keeps the certificates; nil if none are configured.
func newCertificate(s configfile.Settings, store ports.Store, secrets ports.Secrets, clock ports.Clock,
	registry *prometheus.Registry, log *slog.Logger) (*certificate.Keeper, error) {
	return certificate.New(
		certificate.Config{CertFile: s.TLS.CertFile, KeyFile: s.TLS.KeyFile, Hosts: s.TLS.Hosts, Email: s.TLS.Email,
			DirectoryURL: s.TLS.DirectoryURL},
		certificate.Deps{Store: store, Secrets: secrets, Now: clock.Now, Metrics: registry, Log: log})
}

// redirectPlain serves the listener that redirects to the API with TLS, if there is one.
func redirectPlain(lc fx.Lifecycle, s configfile.Settings, k *certificate.Keeper, log *slog.Logger) {
	if s.TLS.RedirectAddr == "" {
		return
	}
	r := certificate.NewRedirect(s.TLS.RedirectAddr, s.PublicURL, k.Challenge, log)
	lc.Append(fx.StartStopHook(r.Start, r.Stop))
}
