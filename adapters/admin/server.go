// Package admin serves the operator's pages on a listener of its own: the health of the process, its readiness,
// Prometheus metrics, and the console. Health and readiness, and the metrics on loopback, need no credential.
package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"agentproxy/adapters/admin/signin"
	"agentproxy/adapters/conns"
)

// Config holds the settings of the pages.
type Config struct {
	// Gate admits users to everything but health and readiness. It is needed.
	Gate *signin.Gate
	// OpenMetrics shows the metrics without a credential to clients that are not on loopback too.
	OpenMetrics bool
	Addr        string   // where to listen; default 127.0.0.1:8082
	Pprof       bool     // serve profiles below /debug/pprof/
	Hosts       []string // further names that the Host header may have
	// Console serves every other path; nil serves none.
	Console http.Handler
	// Connections is how many clients may be connected; 0 is unlimited.
	Connections int
	// DrainDelay is the time between Announce's end of readiness and the stop of what started
	// before it.
	DrainDelay time.Duration
	// CheckTimeout is the timeout of one check; default 2 s.
	CheckTimeout time.Duration
	// ReadTimeout is the timeout of all gauges together; default 3 s.
	ReadTimeout time.Duration
	// ReadEvery is how long a gauge's value is reused; default 5 s.
	ReadEvery time.Duration
}

func (c Config) withDefaults() Config {
	c.Addr = cmp.Or(c.Addr, "127.0.0.1:8082")
	c.CheckTimeout = cmp.Or(c.CheckTimeout, 2*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 3*time.Second)
	c.ReadEvery = cmp.Or(c.ReadEvery, 5*time.Second)
	return c
}

// Limits of a connection. A CPU profile takes half a minute by default.
const (
	headerTimeout  = 5 * time.Second
	writeTimeout   = 30 * time.Second
	profileTimeout = 5 * time.Minute
	idleTimeout    = time.Minute
	maxHeaderBytes = 8 << 10
	maxScrapes     = 3 // at once; more get 503
)

// Server is the admin listener. It cannot be started twice.
type Server struct {
	cfg      Config
	log      *slog.Logger
	checks   []*probe
	phase    atomic.Int32
	work     *work
	http     *http.Server
	table    *conns.Table
	hosts    *conns.Hosts // nil before Start
	listener net.Listener
}

// New returns a server that is not started. Checks have unique names and are shown
// in the order of these.
func New(cfg Config, checks []Check, registry *prometheus.Registry, log *slog.Logger) (*Server, error) {
	if cfg.Gate == nil {
		return nil, errors.New("admin: no gate is given")
	}
	s := &Server{cfg: cfg.withDefaults(), log: log, work: newWork()}
	names := map[string]bool{}
	for _, c := range checks {
		if c.Name == "" || c.Name == serviceLine || c.Run == nil || names[c.Name] {
			return nil, fmt.Errorf("admin: the check %q needs a unique name and a Run function", c.Name)
		}
		names[c.Name] = true
		s.checks = append(s.checks, &probe{Check: c, call: call[struct{}]{work: s.work}})
	}
	slices.SortFunc(s.checks, func(a, b *probe) int { return strings.Compare(a.Name, b.Name) })
	s.table = conns.New(conns.Config{Name: "admin", Limit: s.cfg.Connections})
	for _, c := range []prometheus.Collector{s.table, readiness{s}} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("admin: %w", err)
		}
	}
	s.http = &http.Server{
		Handler:           s.guard(s.pages(registry)),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       headerTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	if s.cfg.Pprof {
		s.http.WriteTimeout = profileTimeout
	}
	conns.Attach(s.http)
	return s, nil
}

// pages returns the handler of all paths. What is not listed here as open needs a sign-in, whatever the method and
// whether it exists.
func (s *Server) pages(registry *prometheus.Registry) http.Handler {
	open, inside := http.NewServeMux(), http.NewServeMux()
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	open.HandleFunc("GET /readyz", s.ready)
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:            scrapeErrors{s.log},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
	})
	protected := s.cfg.Gate.Protect(metrics, signin.Read)
	open.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if s.cfg.OpenMetrics || onLoopback(r) {
			metrics.ServeHTTP(w, r)
			return
		}
		protected.ServeHTTP(w, r)
	})
	entry := s.cfg.Gate.Pages()
	for _, pattern := range signin.Patterns() {
		open.Handle(pattern, entry)
	}
	if s.cfg.Console != nil {
		inside.Handle("/", s.cfg.Console)
	}
	if s.cfg.Pprof {
		for path, serve := range map[string]http.HandlerFunc{"": pprof.Index, "cmdline": pprof.Cmdline,
			"profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace} {
			open.Handle("/debug/pprof/"+path, s.cfg.Gate.Protect(getOnly(serve), signin.Act))
		}
	}
	open.Handle("/", s.cfg.Gate.Protect(inside, signin.Read))
	return open
}

// onLoopback reports whether a request arrived at a loopback address of this host.
func onLoopback(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// getOnly refuses methods other than GET and HEAD.
func getOnly(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			plain(w, http.StatusMethodNotAllowed, "only GET is served here\n")
			return
		}
		serve(w, r)
	}
}

// guard refuses requests that name another host, and those that a browser sends for
// another site: a sign-in of the browser must not serve other pages.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.hosts != nil && !s.hosts.Allow(r.Host):
			plain(w, http.StatusMisdirectedRequest,
				"the Host header is not a name of this listener; use its address, or add the name to AGENTPROXY_ADMIN_HOSTS\n")
		case r.Header.Get("Sec-Fetch-Site") == "cross-site":
			plain(w, http.StatusForbidden, "a web page of another site must not read this\n")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Handler returns the handler of all pages, for tests.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Start binds the address before it returns, so that a taken port fails the
// start, and serves until Stop.
func (s *Server) Start(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen for the admin pages: %w", err)
	}
	s.listener = l
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		s.hosts = &conns.Hosts{Names: s.cfg.Hosts, Addr: a.AddrPort().Addr().Unmap()}
	}
	s.log.InfoContext(ctx, "admin pages listen", "addr", l.Addr().String())
	go func() {
		if err := s.http.Serve(s.table.Listen(l, s.log)); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the admin pages stopped", "err", err)
		}
	}()
	return nil
}

// Addr returns the address that the server listens on, or nil before Start.
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Stop closes the listener and waits for running requests and checks; it aborts
// them when the context ends.
func (s *Server) Stop(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	return errors.Join(err, s.work.stop(ctx))
}

func plain(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}
