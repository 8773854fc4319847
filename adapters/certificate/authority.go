package certificate

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
)

// attemptTime bounds one attempt to have a certificate.
const attemptTime = 5 * time.Minute

// waits are the times between attempts that fail, of all replicas together; the last one repeats. Let's Encrypt
// refuses after 5 validations that fail in an hour.
var waits = []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute,
	30 * time.Minute, time.Hour}

// authority has certificates of hosts by ACME, one at a time.
type authority struct {
	keeper *Keeper
	hosts  []string
	shelf  *shelf
	cache  *certmagic.Cache // empty: what is presented is in Keeper
	magic  *certmagic.Config
	acme   *certmagic.ACMEIssuer
	asked  gate
}

func newAuthority(cfg Config, k *Keeper) *authority {
	s := newShelf(k.deps)
	a := &authority{keeper: k, hosts: cfg.Hosts, shelf: s}
	log := zap.New(&core{log: k.deps.Log})
	a.cache = certmagic.NewCache(certmagic.CacheOptions{Logger: log,
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return a.magic, nil }})
	// An order that names the certificate which it replaces (RFC 9773) is refused for good by an authority that has
	// changed its issuer.
	a.magic = certmagic.New(a.cache, certmagic.Config{Storage: s, Logger: log, DisableARI: true,
		OCSP: certmagic.OCSPConfig{DisableStapling: true}})
	a.acme = certmagic.NewACMEIssuer(a.magic, certmagic.ACMEIssuer{CA: directory(cfg), Email: cfg.Email,
		Agreed: true, TrustedRoots: cfg.Roots, ListenHost: "127.0.0.1", Logger: log})
	a.magic.Issuers = []certmagic.Issuer{a.acme}
	for _, host := range cfg.Hosts {
		k.metrics.missing(host)
	}
	return a
}

// directory returns the URL of the authority.
func directory(cfg Config) string {
	if cfg.DirectoryURL == "" {
		return certmagic.LetsEncryptProductionCA
	}
	return cfg.DirectoryURL
}

func (a *authority) close() { a.cache.Stop() }

// load returns the stored certificate of a host; nil if there is none.
func (a *authority) load(ctx context.Context, host string) (*tls.Certificate, error) {
	issuer := a.acme.IssuerKey()
	cert, err := a.shelf.Load(ctx, certmagic.StorageKeys.SiteCert(issuer, host))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key, err := a.shelf.Load(ctx, certmagic.StorageKeys.SitePrivateKey(issuer, host))
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	return &pair, err
}

// look presents what is stored, and has what is missing or due.
func (a *authority) look(ctx context.Context) {
	for _, host := range a.hosts {
		c, err := a.load(ctx, host)
		if err == nil && a.isDue(c) {
			if err = a.obtain(ctx, host); err == nil {
				c, err = a.load(ctx, host)
			}
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil: // the old one stays
			a.keeper.deps.Log.Error("no new certificate", "host", host, "err", err)
		}
		if c != nil {
			a.present(host, c)
		}
	}
}

// present shows the certificate of a host beside those of the others, unless it is shown already.
func (a *authority) present(host string, c *tls.Certificate) {
	next := shown{named: map[string]*tls.Certificate{}}
	if s := a.keeper.shown.Load(); s != nil {
		if old := s.named[host]; old != nil && old.Leaf.Equal(c.Leaf) {
			return
		}
		for name, of := range s.named {
			next.named[name] = of
		}
	}
	next.named[host] = c
	for _, name := range a.hosts {
		if next.first == nil {
			next.first = next.named[name]
		}
	}
	a.keeper.deps.Log.Info("a certificate is presented", "host", host, "expires", c.Leaf.NotAfter)
	a.keeper.present(next)
}

// isDue reports whether a certificate is missing or due to be renewed.
func (a *authority) isDue(c *tls.Certificate) bool {
	return c == nil || !a.keeper.deps.Now().Before(due(c.Leaf))
}

// tried is what is stored of attempts that failed, or that a crash cut off.
type tried struct {
	Times int
	Next  time.Time
}

// triedName is where the attempts of a host are stored.
func triedName(host string) string { return "attempts/" + host }

// waiting returns the attempts for a host, and whether the next one is not due yet.
func (a *authority) waiting(ctx context.Context, host string) (t tried, waits bool, err error) {
	text, err := a.shelf.Load(ctx, triedName(host))
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return t, a.keeper.deps.Now().Before(t.Next), err
}

// obtain has a new certificate of a host, unless another replica is at it, or it is too soon after an attempt that
// failed. The attempt is stored before it begins, so that a process which crashes in it does not repeat it at once.
func (a *authority) obtain(ctx context.Context, host string) error {
	if _, waits, err := a.waiting(ctx, host); err != nil || waits {
		return err
	}
	lock := "attempt/" + host
	if has, err := a.shelf.TryLock(ctx, lock); err != nil || !has {
		return err
	}
	defer func() { _ = a.shelf.Unlock(ctx, lock) }()
	t, waits, err := a.waiting(ctx, host) // another replica may have been at it until now
	if err != nil || waits {
		return err
	}
	c, err := a.load(ctx, host)
	if err != nil || !a.isDue(c) {
		return err
	}
	t.Next = a.keeper.deps.Now().Add(waitAfter(t.Times))
	t.Times++
	text, err := json.Marshal(t)
	if err == nil {
		err = a.shelf.Store(ctx, triedName(host), text)
	}
	if err != nil {
		return err
	}
	if err := a.attempt(ctx, host, c != nil); err != nil {
		a.keeper.metrics.attempts.WithLabelValues("failed").Inc()
		return err
	}
	a.keeper.metrics.attempts.WithLabelValues("obtained").Inc()
	return a.shelf.Delete(ctx, triedName(host))
}

// waitAfter returns the time to wait after an attempt that fails, the first being number 0.
func waitAfter(failed int) time.Duration { return waits[min(failed, len(waits)-1)] }

// attempt asks the authority. certmagic starts servers for its challenges where nothing listens; the listeners of the
// service answer them, so it finds that something does.
func (a *authority) attempt(ctx context.Context, host string, renew bool) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	a.acme.AltHTTPPort = l.Addr().(*net.TCPAddr).Port
	a.acme.AltTLSALPNPort = a.acme.AltHTTPPort
	if renew {
		return a.magic.RenewCertSync(ctx, host, true)
	}
	return a.magic.ObtainCertSync(ctx, host)
}

// challengePath begins the path of a request of an authority.
const challengePath = "/.well-known/acme-challenge/"

// answer answers a request of an authority from what a replica stored.
func (a *authority) answer(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, challengePath) {
		return false
	}
	if !a.asked.admits(a.keeper.deps.Now()) || !a.acme.HandleHTTPChallenge(w, r) {
		http.NotFound(w, r)
	}
	return true
}

// challenged returns the certificate of a challenge, of what a replica stored.
func (a *authority) challenged(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if !a.asked.admits(a.keeper.deps.Now()) {
		return nil, errors.New("certificate: too many challenges")
	}
	return a.magic.GetCertificate(hello)
}

// maxAsked is how many challenges are looked up in a second: each reads the database, without a credential.
const maxAsked = 50

// gate admits maxAsked in a second.
type gate struct{ second, asked atomic.Int64 }

func (g *gate) admits(now time.Time) bool {
	if s := now.Unix(); g.second.Swap(s) != s {
		g.asked.Store(0)
	}
	return g.asked.Add(1) <= maxAsked
}
