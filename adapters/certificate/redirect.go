package certificate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"agentproxy/adapters/conns"
)

// The limits of a listener that redirects.
const (
	redirectConns   = 128
	redirectAddress = 32 // connections of one client address
	redirectTime    = 10 * time.Second
	redirectHeader  = 8 << 10 // bytes
)

// Redirect answers requests in plain text with where the API is.
type Redirect struct {
	addr     string
	table    *conns.Table
	http     *http.Server
	listener net.Listener
	log      *slog.Logger
}

// NewRedirect creates a Redirect to the base URL of the API. What challenge answers is not redirected.
func NewRedirect(addr, to string, challenge func(http.ResponseWriter, *http.Request) bool, log *slog.Logger) *Redirect {
	r := &Redirect{addr: addr, log: log,
		table: conns.New(conns.Config{Name: "redirect", Limit: redirectConns, PerAddress: redirectAddress})}
	r.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if challenge(w, req) {
				return
			}
			// A path with two slashes at its beginning, and one of a request for a proxy, names another host.
			w.Header().Set("Location", to+"/"+trimSlashes(req.URL.RequestURI()))
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusPermanentRedirect)
		}),
		ReadTimeout: redirectTime, WriteTimeout: redirectTime, IdleTimeout: redirectTime, MaxHeaderBytes: redirectHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	conns.Attach(r.http)
	return r
}

// trimSlashes returns a text of a request without the slashes at its beginning.
func trimSlashes(uri string) string {
	for len(uri) > 0 && uri[0] == '/' {
		uri = uri[1:]
	}
	return uri
}

// Start binds the address before it returns, and serves until Stop.
func (r *Redirect) Start(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", r.addr)
	if err != nil {
		return fmt.Errorf("listen to redirect: %w", err)
	}
	r.listener = l
	r.log.InfoContext(ctx, "plain HTTP is redirected", "addr", l.Addr().String())
	go func() {
		if err := r.http.Serve(r.table.Listen(l, r.log)); !errors.Is(err, http.ErrServerClosed) {
			r.log.Error("the listener that redirects stopped", "err", err)
		}
	}()
	return nil
}

// Addr returns the address of the listener, after Start.
func (r *Redirect) Addr() net.Addr { return r.listener.Addr() }

// Stop ends the requests under way.
func (r *Redirect) Stop() error { return r.http.Close() }
