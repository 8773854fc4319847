package httpapi

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

// apiConfig is what the operator decides about every operation, and what they all need.
type apiConfig struct {
	PublicURL      string // the base URL of the document's server, without Prefix; empty: relative
	Version        string // of the document
	TrustedProxies []netip.Prefix
	Accounts       *accounts.Service
	Limits         *ratelimit.Limits
	Clock          ports.Clock
	IDs            ports.IDs
	Log            *slog.Logger
	// Trace begins to trace a request to a route, by its template. It returns the context of what the
	// request does, and what ends it with the status of the answer. Nil means that none are traced.
	Trace func(r *http.Request, method, route, id string) (context.Context, func(status int))
	// Misplaced returns why a request is not meant for this server, or nil. Nil means that every request is.
	Misplaced func(*http.Request) error
}

// API is a set of operations, their document, and the engine that serves them.
type API struct {
	apiConfig
	Engine   *gin.Engine // to which paths beside the operations are added
	huma     huma.API
	ops      map[string]*operation // by id
	fixed    limitHeaderCache
	patterns map[string]string // descriptions of the patterns of the document
	pages    []string          // paths of what is served beside the operations
	metrics  *metrics
	outages  *outages
}

// newAPI returns an API without operations.
func newAPI(cfg apiConfig) *API {
	a := &API{apiConfig: cfg, Engine: newEngine(), ops: map[string]*operation{}, patterns: map[string]string{},
		metrics: newMetrics()}
	a.outages = newOutages(cfg.Log, cfg.Clock, a.metrics)
	a.Engine.Use(a.observe, a.guard)
	a.Engine.NoRoute(a.refuseRoute)
	a.Engine.NoMethod(func(c *gin.Context) { a.refuse(callOf(c), errNoMethod) })
	a.newDocument()
	return a
}

func newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.ForwardedByClientIP = false // see clientAddr
	return e
}

// guard refuses what is not meant for this server.
func (a *API) guard(c *gin.Context) {
	if a.Misplaced == nil {
		return
	}
	if err := a.Misplaced(c.Request); err != nil {
		c.Writer.Header()["Connection"] = []string{"close"}
		a.refuse(callOf(c), err)
		c.Abort()
	}
}

// route adds a path that the document does not have: o names it in metrics and in the limits of its body.
func (a *API) route(method, path string, o *operation, serve func(*call)) {
	a.Engine.Handle(method, path, func(g *gin.Context) {
		c := callOf(g)
		c.op = o
		serve(c)
	})
}

// addPaths adds paths beside the operations to those that the refusal of an unknown one may name.
func (a *API) addPaths(paths ...string) { a.pages = append(a.pages, paths...) }

// operations returns the operations by path and method.
func (a *API) operations() []*operation {
	return slices.SortedFunc(maps.Values(a.ops), func(x, y *operation) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Method, y.Method))
	})
}

// collect adds a collector to the series of the API.
func (a *API) collect(c prometheus.Collector) { a.metrics.all = append(a.metrics.all, c) }

// register shows the series of the API in a registry; nil means none.
func (a *API) register(r *prometheus.Registry) error { return a.metrics.register(r) }

// unregister removes what register added.
func (a *API) unregister(r *prometheus.Registry) { a.metrics.unregister(r) }
