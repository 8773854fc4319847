// Package httpapi serves the public API: it declares the operations of every family with the use cases that they
// call, listens, and serves what lies beside the operations, which are pages, the tools of agents and the console.
package httpapi

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/pages"
	"agentproxy/app/accounts"
	"agentproxy/app/catalogs"
	"agentproxy/app/feed"
	"agentproxy/app/ledger"
	"agentproxy/app/ordering"
	"agentproxy/app/payments"
	"agentproxy/app/policies"
	"agentproxy/app/replacements"
	"agentproxy/app/reveals"
	"agentproxy/app/sessions"
	"agentproxy/app/telemetry"
	"agentproxy/app/throttle"
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
	GatewayTLS     bool   // the gateway takes TLS too: there is an https_url
	GatewayOnlyTLS bool   // it refuses what is not TLS
	TrustedProxies []netip.Prefix
	// Balancers are networks whose connections may begin with a header of the PROXY protocol; none is the default.
	Balancers []netip.Prefix
	// TLS has the certificate of the API, which takes TLS alone then. Nil: it takes plain HTTP.
	TLS *tls.Config
	// Challenge answers a request of a certificate authority, also in plain text, and reports whether it was one. Nil:
	// none is expected.
	Challenge     func(http.ResponseWriter, *http.Request) bool
	Version       string // answered by GET /health; empty: dev
	Dev           bool   // development mode: the Host header is checked on every address
	Connections   int    // of clients; 0: unlimited
	PerAddress    int    // of them without a credential from one client address; 0: unlimited
	RevealSecrets bool   // whether answers of tools may hold the credentials of a session
	Shop          string // the name on pages; empty: agentproxy
	AbuseContact  string // URI of those who handle abuse; empty: none is published
	Downloads     string // the folder with the builds of apx that are offered; empty: none are
	ToolTable     []pages.Tool
	GatewayErrors []pages.Refusal
}

// Deps are the use cases that the API offers and what it needs besides.
type Deps struct {
	fx.In

	Accounts     *accounts.Service
	Catalog      *catalogs.Catalog
	Sessions     *sessions.Service
	Policies     *policies.Service
	Workers      *workers.Service
	Callbacks    *ordering.Callbacks
	Checks       *sessions.Checks
	Telemetry    *telemetry.Service
	Wallet       *ledger.Wallet
	Recharges    *payments.Orders
	Webhooks     *webhooks.Service
	Feed         *feed.Service
	Stats        *ledger.Stats
	Reveals      *reveals.Service
	Replacements *replacements.Service
	Limits       *throttle.Limits
	Store        ports.Store // for the health check
	Clock        ports.Clock
	IDs          ports.IDs
	Log          *slog.Logger
	// Tools serves POST /mcp. Nil means that the path does not exist.
	Tools Tools `optional:"true"`
	// Console serves the pages for people. Nil means that they do not exist.
	Console Console `optional:"true"`
	// Trace traces requests. Nil means that none are.
	Trace Trace `optional:"true"`
	// Book is called before an answer with the usage of an agent. Nil means that all of it is booked.
	Book Book `optional:"true"`
	// Metrics is the registry of the API's series while it runs. Nil means none.
	Metrics *prometheus.Registry `optional:"true"`
}

// Server is the public API.
type Server struct {
	*Deps    // a pointer, since fx refuses results that embed fx.In
	cfg      Config
	api      *endpoint.API
	http     *http.Server
	listener net.Listener
	table    *conns.Table
	hosts    *conns.Hosts // that requests may name; nil: any
}

// Book books what the sessions of an agent have used.
type Book func(ctx context.Context, agentID string) error

// Trace begins to trace a request to a route, by its template. It returns the context of what the
// request does, and what ends it with the status of the answer.
type Trace func(r *http.Request, method, route, id string) (context.Context, func(status int))

// The limits of a connection. WriteTimeout leaves time for a provider that is
// slow to deliver.
const (
	headerTimeout  = 10 * time.Second
	writeTimeout   = 2 * time.Minute
	idleTimeout    = 30 * time.Second
	maxHeaderBytes = 32 << 10
)
