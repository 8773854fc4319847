// Package httpapi serves the public API: gin routes whose operations are
// declared once with huma, the envelope around every answer, authentication and
// rate limits.
package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/httpapi/pages"
	"agentproxy/app/accounts"
	"agentproxy/app/catalog"
	"agentproxy/app/ledger"
	"agentproxy/app/payments"
	"agentproxy/app/policy"
	"agentproxy/app/procurement"
	"agentproxy/app/ratelimit"
	"agentproxy/app/reveals"
	"agentproxy/app/sessions"
	"agentproxy/app/telemetry"
	"agentproxy/app/webhooks"
	"agentproxy/app/workers"
	"agentproxy/ports"
)

// Config is what the operator decides about the API.
type Config struct {
	Addr           string // where to listen; empty: 127.0.0.1:8080
	PublicURL      string // the base URL of the document's server, without /v1; empty: relative
	GatewayHost    string // written into full_url; empty: 127.0.0.1
	GatewayPort    int    // written into full_url; 0: 8081
	TrustedProxies []netip.Prefix
	Version        string // answered by GET /health; empty: dev
	Dev            bool   // development mode: the Host header is checked on every address
	Connections    int    // of clients; 0: unlimited
	PerAddress     int    // of them without a credential from one client address; 0: unlimited
	RevealSecrets  bool   // whether answers of tools may hold the credentials of a session
	AbuseContact   string // URI of those who handle abuse; empty: none is published
	ToolTable      []pages.Tool
	GatewayErrors  []pages.Refusal
}

// Deps are the use cases that the API offers and what it needs besides.
type Deps struct {
	fx.In

	Accounts  *accounts.Service
	Catalog   *catalog.Catalog
	Sessions  *sessions.Service
	Policies  *policy.Service
	Workers   *workers.Service
	Callbacks *procurement.Callbacks
	Checks    *sessions.Checks
	Telemetry *telemetry.Service
	Wallet    *ledger.Wallet
	Recharges *payments.Orders
	Webhooks  *webhooks.Service
	Stats     *ledger.Stats
	Reveals   *reveals.Service
	Limits    *ratelimit.Limits
	Store     ports.Store // for the health check
	Clock     ports.Clock
	IDs       ports.IDs
	Log       *slog.Logger
	// Tools serves POST /mcp. Nil means that the path does not exist.
	Tools Tools `optional:"true"`
	// Console serves the pages for people. Nil means that they do not exist.
	Console Console `optional:"true"`
	// Trace traces requests. Nil means that none are.
	Trace Trace `optional:"true"`
	// Metrics is the registry of the API's series while it runs. Nil means none.
	Metrics *prometheus.Registry `optional:"true"`
}

// Server is the public API.
type Server struct {
	*Deps    // a pointer, since fx refuses results that embed fx.In
	cfg      Config
	engine   *gin.Engine
	api      huma.API
	ops      map[string]*operation // by id
	http     *http.Server
	listener net.Listener
	table    *conns.Table
	hosts    *conns.Hosts // that requests may name; nil: any
	fixed    limitHeaderCache
	patterns map[string]string // descriptions of the patterns of the document
	pages    []string          // paths of what is served beside the operations
	metrics  *metrics
	outages  *outages
}

// Prefix is where the API begins; the document's paths are relative to it.
const Prefix = "/v1"

// The limits of a connection. WriteTimeout leaves time for a provider that is
// slow to deliver.
const (
	headerTimeout  = 10 * time.Second
	readTimeout    = 30 * time.Second
	writeTimeout   = 2 * time.Minute
	idleTimeout    = 30 * time.Second
	maxHeaderBytes = 32 << 10
)

// New declares every operation and builds the document. It panics when an
// operation contradicts itself, which is a fault of the program.
func New(cfg Config, deps Deps) *Server {
	cfg.Addr = cmp.Or(cfg.Addr, "127.0.0.1:8080")
	cfg.GatewayHost = cmp.Or(cfg.GatewayHost, "127.0.0.1")
	cfg.GatewayPort = cmp.Or(cfg.GatewayPort, 8081)
	cfg.Version = cmp.Or(cfg.Version, "dev")
	s := &Server{Deps: &deps, cfg: cfg, ops: map[string]*operation{}, patterns: map[string]string{},
		metrics: newMetrics()}
	s.outages = newOutages(s.Log, s.Clock, s.metrics)
	s.table = conns.New(conns.Config{Name: "api", Limit: cfg.Connections, PerAddress: cfg.PerAddress,
		Exempt: cfg.TrustedProxies})
	s.metrics.all = append(s.metrics.all, s.table)
	s.newEngine()
	s.newAPI()
	s.declareService()
	s.declareAccounts()
	s.declareProducts()
	s.declareSessions()
	s.declarePolicy()
	s.declareChanges()
	s.declareSettings()
	s.declareTopUp()
	s.declareWorkers()
	s.declarePeers()
	s.declareSessionViews()
	s.declareReveal()
	s.declareConnect()
	s.declareTelemetry()
	s.declareBilling()
	s.declareRecharges()
	s.declareWebhooks()
	s.declareStats()
	s.declareCallbacks()
	s.finishDocument()
	s.serveDocs()
	s.servePages()
	s.serveTools()
	s.serveConsole()
	s.http = &http.Server{
		Handler:           compress(s.engine),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(deps.Log.Handler(), slog.LevelDebug),
	}
	conns.Attach(s.http)
	return s
}

func (s *Server) newEngine() {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.ForwardedByClientIP = false // see clientAddr
	e.Use(s.observe, s.guard)
	e.NoRoute(s.refuseRoute)
	e.NoMethod(func(c *gin.Context) { s.refuse(callOf(c), errNoMethod) })
	s.engine = e
}

// Handler returns the handler of the API, for tests and other listeners.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Start binds the address before it returns, so that a taken port fails the
// start, and serves until Stop.
func (s *Server) Start(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen for the API: %w", err)
	}
	if err := s.metrics.register(s.Metrics); err != nil {
		return errors.Join(fmt.Errorf("register the metrics of the API: %w", err), l.Close())
	}
	s.listener, s.hosts = l, s.guarded(l)
	s.Log.InfoContext(ctx, "API listens", "addr", l.Addr().String())
	go func() {
		if err := s.http.Serve(s.table.Listen(l, s.Log)); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.Log.Error("the API stopped", "err", err)
		}
	}()
	return nil
}

// Addr returns the address of the listener, after Start.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Stop accepts nothing more and waits for the requests under way; when the
// context ends first they are cut.
func (s *Server) Stop(ctx context.Context) error {
	defer s.metrics.unregister(s.Metrics)
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	return err
}
