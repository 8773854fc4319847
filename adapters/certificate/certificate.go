// Package certificate keeps the certificates that the gateway and the API present: a pair of files, read again when
// they change, or those that an authority issues by ACME (RFC 8555), which all replicas share by the database.
package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/ports"
)

// Config is where the certificates come from: files, or an authority.
type Config struct {
	// CertFile and KeyFile are PEM files.
	CertFile, KeyFile string
	// Hosts are the names that certificates are had for, one each, in lower case; the first one's is presented to
	// clients that name another or none.
	Hosts []string
	// Email is where the authority writes to; empty: nowhere.
	Email string
	// DirectoryURL is the authority's; empty: Let's Encrypt.
	DirectoryURL string
	// Roots are those of the authority's own certificate; nil: the system's.
	Roots *x509.CertPool
}

// Deps are what a Keeper needs besides.
type Deps struct {
	// Store has what replicas share of an authority, sealed by Secrets.
	Store   ports.Store
	Secrets ports.Secrets
	Now     func() time.Time      // default time.Now; with a Store that of the database
	Metrics prometheus.Registerer // series are registered while the Keeper runs; nil for none
	Log     *slog.Logger          // default discards
}

// Keeper keeps the certificates. A nil Keeper has none.
type Keeper struct {
	deps    Deps
	files   *files     // nil: an authority
	issuer  *authority // nil: files
	shown   atomic.Pointer[shown]
	metrics *metrics
	cancel  context.CancelFunc
	loops   sync.WaitGroup
}

// shown is what is presented at a time.
type shown struct {
	first *tls.Certificate
	named map[string]*tls.Certificate // by host; empty with files
}

// New reads the certificate. It returns nil without an error if none is configured, and an error if files cannot be
// read, have a fault, or hold a certificate that has expired. What an authority issues is had after Start.
func New(cfg Config, deps Deps) (*Keeper, error) {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	k := &Keeper{deps: deps, metrics: newMetrics()}
	switch {
	case cfg.CertFile != "":
		k.files = &files{cert: cfg.CertFile, key: cfg.KeyFile}
		pair, _, err := k.files.read(deps.Now())
		if err != nil {
			return nil, err
		}
		k.present(shown{first: pair})
	case len(cfg.Hosts) > 0:
		k.issuer = newAuthority(cfg, k)
	default:
		return nil, nil
	}
	return k, nil
}

// errNone is the fault of a handshake before there is a certificate.
var errNone = errors.New("certificate: there is none yet")

// challengeProtocol is the protocol that an authority asks for alone (RFC 8737).
const challengeProtocol = "acme-tls/1"

// TLS returns a configuration of a server that presents the certificate as it is at each handshake; nil if there is
// none. The caller sets the protocols that it negotiates, before those that it finds there: a connection for which one
// of these was negotiated is closed after its handshake.
func (k *Keeper) TLS() *tls.Config {
	if k == nil {
		return nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: k.certificate}
	if k.issuer != nil {
		c.NextProtos = []string{challengeProtocol}
	}
	return c
}

// certificate returns what a handshake presents.
func (k *Keeper) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if k.issuer != nil && len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == challengeProtocol {
		return k.issuer.challenged(hello)
	}
	s := k.shown.Load()
	if s == nil {
		return nil, errNone
	}
	if c := s.named[strings.ToLower(hello.ServerName)]; c != nil {
		return c, nil
	}
	return s.first, nil
}

// Own returns a configuration of a client that reaches this process itself, whose address no certificate names: it
// takes what the process presents and nothing else. Nil if there is no certificate.
func (k *Keeper) Own() *tls.Config {
	if k == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			own, err := k.certificate(&tls.ClientHelloInfo{ServerName: state.ServerName})
			if err == nil && !state.PeerCertificates[0].Equal(own.Leaf) {
				err = errors.New("certificate: another process answers at the address of this one")
			}
			return err
		}}
}

// present makes certificates those that are presented.
func (k *Keeper) present(s shown) {
	k.shown.Store(&s)
	all := s.named
	if len(all) == 0 {
		all = map[string]*tls.Certificate{nameOfFiles: s.first}
	}
	for name, c := range all {
		k.metrics.shown(name, c.Leaf)
	}
}

// nameOfFiles is the value of the label name for a pair of files.
const nameOfFiles = "files"

// Challenge answers what an authority requests to see that a host is this service (RFC 8555 section 8.3), and
// reports whether a request was that.
func (k *Keeper) Challenge(w http.ResponseWriter, r *http.Request) bool {
	return k != nil && k.issuer != nil && k.issuer.answer(w, r)
}

// How often the certificates are looked after, and what a look takes at most.
const (
	everyFiles     = 20 * time.Second
	everyAuthority = time.Minute
)

// Start looks after the certificates in the background.
func (k *Keeper) Start() error {
	if k == nil {
		return nil
	}
	if k.deps.Metrics != nil {
		if err := k.deps.Metrics.Register(k.metrics); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	every := everyFiles
	if k.issuer != nil {
		every = everyAuthority
	}
	k.loops.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			k.Look(ctx)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return nil
}

// Stop ends what Start began.
func (k *Keeper) Stop() {
	if k == nil || k.cancel == nil {
		return
	}
	k.cancel()
	k.loops.Wait()
	if k.issuer != nil {
		k.issuer.close()
	}
	if k.deps.Metrics != nil {
		k.deps.Metrics.Unregister(k.metrics)
	}
}

// Look looks after the certificates once. Files are read again, and a pair that is another one is presented; one that
// has a fault is logged once, and the old one stays. From an authority what is missing or due is had, by one replica;
// while that fails the old ones stay.
func (k *Keeper) Look(ctx context.Context) {
	if k.issuer != nil {
		k.issuer.look(ctx)
		return
	}
	pair, changed, err := k.files.read(k.deps.Now())
	switch {
	case !changed:
	case err != nil:
		k.metrics.fault.Set(1)
		k.deps.Log.Error("the certificate is as before: its new files have a fault", "fault", err)
	default:
		k.deps.Log.Info("the certificate was read", "names", pair.Leaf.DNSNames, "expires", pair.Leaf.NotAfter)
		k.metrics.fault.Set(0)
		k.present(shown{first: pair})
	}
}
