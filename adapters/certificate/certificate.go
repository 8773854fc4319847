// Package certificate keeps the certificate that the gateway and the API present: a pair of files, read again when
// they change.
package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Config is where the certificate comes from.
type Config struct {
	// CertFile and KeyFile are PEM files.
	CertFile, KeyFile string
}

// Keeper keeps the certificate. A nil Keeper has none, as one that has no files.
type Keeper struct {
	cfg     Config
	log     *slog.Logger
	now     func() time.Time
	files   *files // nil: none
	current atomic.Pointer[tls.Certificate]
	cancel  context.CancelFunc
	loops   sync.WaitGroup
}

// New reads the certificate. It returns nil without an error if none is configured, and an error if the files cannot be
// read, have a fault, or hold one that has expired. A nil now is time.Now.
func New(cfg Config, now func() time.Time, log *slog.Logger) (*Keeper, error) {
	if cfg.CertFile == "" {
		return nil, nil
	}
	if now == nil {
		now = time.Now
	}
	k := &Keeper{cfg: cfg, log: log, now: now, files: &files{cert: cfg.CertFile, key: cfg.KeyFile}}
	pair, _, err := k.files.read(now())
	if err != nil {
		return nil, err
	}
	k.present(pair)
	return k, nil
}

// errNone is the fault of a handshake before there is a certificate.
var errNone = errors.New("certificate: there is none yet")

// TLS returns a configuration of a server that presents the certificate as it is at each handshake; nil if there is
// none. The caller sets the protocols that it negotiates, before those that it finds there.
func (k *Keeper) TLS() *tls.Config {
	if k == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: k.certificate}
}

// certificate returns what a handshake presents.
func (k *Keeper) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.current.Load(); c != nil {
		return c, nil
	}
	return nil, errNone
}

// present makes a pair the one that is presented.
func (k *Keeper) present(pair *tls.Certificate) {
	k.current.Store(pair)
	k.log.Info("the certificate was read", "names", pair.Leaf.DNSNames, "addresses", pair.Leaf.IPAddresses,
		"expires", pair.Leaf.NotAfter)
}

// rereadEvery is how often the files are compared with what was read of them.
const rereadEvery = 20 * time.Second

// Start looks after the certificate in the background.
func (k *Keeper) Start() {
	if k == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	k.loops.Go(func() {
		tick := time.NewTicker(rereadEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				k.Reread()
			}
		}
	})
}

// Stop ends what Start began.
func (k *Keeper) Stop() {
	if k != nil && k.cancel != nil {
		k.cancel()
		k.loops.Wait()
	}
}

// Reread reads the files again, and presents the pair if it is another one. A pair that has a fault is logged once, and
// the old one stays.
func (k *Keeper) Reread() {
	pair, changed, err := k.files.read(k.now())
	switch {
	case !changed:
	case err != nil:
		k.log.Error("the certificate is as before: its new files have a fault", "fault", err)
	default:
		k.present(pair)
	}
}
