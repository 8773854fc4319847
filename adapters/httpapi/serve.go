package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/app/sessions"
)

// New declares every operation and builds the document. It panics when an
// operation contradicts itself, which is a fault of the program.
func New(cfg Config, deps Deps) *Server {
	cfg.Addr = cmp.Or(cfg.Addr, "127.0.0.1:8080")
	cfg.GatewayHost = cmp.Or(cfg.GatewayHost, "127.0.0.1")
	cfg.GatewayPort = cmp.Or(cfg.GatewayPort, 8081)
	cfg.Version = cmp.Or(cfg.Version, "dev")
	s := &Server{Deps: &deps, cfg: cfg}
	s.table = conns.New(conns.Config{Name: "api", Limit: cfg.Connections, PerAddress: cfg.PerAddress,
		Exempt: cfg.TrustedProxies})
	s.api = endpoint.New(endpoint.Config{PublicURL: cfg.PublicURL, Version: cfg.Version,
		Shop:           cmp.Or(cfg.Shop, "agentproxy"),
		TrustedProxies: cfg.TrustedProxies,
		Accounts:       deps.Accounts, Limits: deps.Limits, Clock: deps.Clock, IDs: deps.IDs, Log: deps.Log,
		BoughtBy: sessions.Buyers{Service: deps.Sessions}.BoughtBy, Trace: deps.Trace,
		Book:      deps.Book,
		Misplaced: s.misplaced, CrossSite: s.crossSite})
	s.api.Collect(s.table)
	s.declareService()
	s.declareCallbacks()
	declareFamilies(s.api, &deps, s.gateway())
	s.serveDocument(s.api.FinishDocument())
	s.serveDocs()
	s.servePages()
	s.serveTools()
	s.serveConsole()
	s.http = &http.Server{
		Handler:           s.challenged(compress(s.api.Engine)),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       endpoint.ReadTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(deps.Log.Handler(), slog.LevelDebug),
	}
	conns.Attach(s.http)
	if cfg.TLS != nil {
		s.http.TLSConfig = cfg.TLS.Clone()
		s.http.TLSConfig.NextProtos = append([]string{"h2", "http/1.1"}, cfg.TLS.NextProtos...)
	}
	return s
}

// challenged answers what a certificate authority asks before all else.
func (s *Server) challenged(next http.Handler) http.Handler {
	if s.cfg.Challenge == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.cfg.Challenge(w, r) {
			next.ServeHTTP(w, r)
		}
	})
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
	if err := s.api.Register(s.Metrics); err != nil {
		return errors.Join(fmt.Errorf("register the metrics of the API: %w", err), l.Close())
	}
	s.listener, s.hosts = l, s.guarded(l)
	s.Log.InfoContext(ctx, "API listens", "addr", l.Addr().String())
	counted := s.table.Listen(l, s.Log)
	counted.Balancers, counted.HeaderTimeout = s.cfg.Balancers, headerTimeout
	var accepting net.Listener = counted
	if s.http.TLSConfig != nil {
		accepting = counted.Secure(s.http.TLSConfig, headerTimeout)
	}
	go func() {
		if err := s.http.Serve(accepting); err != nil && !errors.Is(err, http.ErrServerClosed) {
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
	defer s.api.Unregister(s.Metrics)
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	return err
}
