// Package endpoint serves declared operations: it makes the route, the document and the validation of each from
// its declaration, and surrounds a call with authentication, limits, the envelope, refusals and metrics.
package endpoint

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/app/accounts"
	"agentproxy/app/ratelimit"
	"agentproxy/ports"
)

// Prefix is where the API begins; the document's paths are relative to it.
const Prefix = "/v1"

// Config is what the operator decides about every operation, and what they all need.
type Config struct {
	PublicURL      string // the base URL of the document's server, without Prefix; empty: relative
	Version        string // of the document
	Shop           string // the name on pages for people
	TrustedProxies []netip.Prefix
	Accounts       *accounts.Service
	Limits         *ratelimit.Limits
	Clock          ports.Clock
	IDs            ports.IDs
	Log            *slog.Logger
	// Trace begins to trace a request to a route, by its template. It returns the context of what the
	// request does, and what ends it with the status of the answer. Nil means that none are traced.
	Trace func(r *http.Request, method, route, id string) (context.Context, func(status int))
	// BoughtBy returns the id of the key that bought a session of an agent, or session.ErrNotFound.
	BoughtBy func(ctx context.Context, agentID, sessionID string) (string, error)
	// Misplaced returns why a request is not meant for this server, or nil. Nil means that every request is.
	Misplaced func(*http.Request) error
	// CrossSite reports whether a page of another site made a browser send a request. Operations without a
	// credential that change something refuse it.
	CrossSite func(*http.Request) bool
}

// API is a set of operations, their document, and the engine that serves them.
type API struct {
	Config
	Engine  *gin.Engine // to which paths beside the operations are added
	doc     *huma.OpenAPI
	ops     map[string]*Operation // by id
	fixed   limitHeaderCache
	pages   []string // paths of what is served beside the operations
	metrics *metrics
	outages *outages
	quiet   quiet
}

// AddPaths adds paths beside the operations to those that the refusal of an unknown one may name.
func (a *API) AddPaths(paths ...string) { a.pages = append(a.pages, paths...) }

// Operations returns the operations by path and method.
func (a *API) Operations() []*Operation {
	return slices.SortedFunc(maps.Values(a.ops), func(x, y *Operation) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Method, y.Method))
	})
}

// Collect adds a collector to the series of the API.
func (a *API) Collect(c prometheus.Collector) { a.metrics.all = append(a.metrics.all, c) }

// Register shows the series of the API in a registry; nil means none.
func (a *API) Register(r *prometheus.Registry) error { return a.metrics.register(r) }

// Unregister removes what Register added.
func (a *API) Unregister(r *prometheus.Registry) { a.metrics.unregister(r) }

// New returns an API without operations.
func New(cfg Config) *API {
	a := &API{Config: cfg, Engine: newEngine(), ops: map[string]*Operation{}, metrics: newMetrics()}
	a.outages = newOutages(cfg.Log, cfg.Clock, a.metrics)
	a.Engine.Use(a.observe, a.guard)
	a.Engine.NoRoute(a.refuseRoute)
	a.Engine.NoMethod(func(c *gin.Context) {
		allow := strings.Split(c.Writer.Header().Get("Allow"), ", ")
		slices.Sort(allow)
		a.Refuse(CallOf(c), errNoMethod.With("allow", allow))
	})
	a.newDocument()
	return a
}

func newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.ForwardedByClientIP = false // see ClientAddr
	return e
}

// guard refuses what is not meant for this server.
func (a *API) guard(c *gin.Context) {
	if a.Misplaced == nil {
		return
	}
	if err := a.Misplaced(c.Request); err != nil {
		c.Writer.Header()["Connection"] = []string{"close"}
		a.Refuse(CallOf(c), err)
		c.Abort()
	}
}

// Route adds a path that the document does not have: o names it in metrics and in the limits of its body.
func (a *API) Route(method, path string, o *Operation, serve func(*Call)) {
	a.Engine.Handle(method, path, func(g *gin.Context) {
		c := CallOf(g)
		c.op = o
		serve(c)
	})
}
