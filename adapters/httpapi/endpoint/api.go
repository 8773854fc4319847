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
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/adapters/lograte"
	"agentproxy/app/accounts"
	"agentproxy/app/throttle"
	"agentproxy/domain/account"
	"agentproxy/domain/ratelimit"
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
	Limits         *throttle.Limits
	Clock          ports.Clock
	IDs            ports.IDs
	Log            *slog.Logger
	// Trace begins to trace a request to a route, by its template. It returns the context of what the
	// request does, and what ends it with the status of the answer. Nil means that none are traced.
	Trace func(r *http.Request, method, route, id string) (context.Context, func(status int))
	// BoughtBy returns the id of the key that bought a session of an agent, or session.ErrNotFound.
	BoughtBy func(ctx context.Context, agentID, sessionID string) (string, error)
	// Book books what the sessions of an agent have used, before an operation that shows Usage. Its failure is no
	// reason to refuse: what is booked already is shown. Nil means that all of it is booked.
	Book func(ctx context.Context, agentID string) error
	// Misplaced returns why a request is not meant for this server, or nil. Nil means that every request is.
	Misplaced func(*http.Request) error
	// CrossSite reports whether a page of another site made a browser send a request. Operations without a
	// credential that change something refuse it.
	CrossSite func(*http.Request) bool
}

// API is a set of operations, their document, and the engine that serves them.
type API struct {
	Config
	Engine  *gin.Engine           // to which paths beside the operations are added
	doc     *huma.OpenAPI         // nil once it is written
	parts   []func()              // what completes doc when it is asked for
	ops     map[string]*Operation // by id
	fixed   limitHeaderCache
	pages   []string // paths of what is served beside the operations
	metrics *metrics
	outages *outages
	served  *lograte.Limiter // of the lines of the access log
	refused *lograte.Limiter
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
func (a *API) Collect(c prometheus.Collector) { a.metrics.Collectors = append(a.metrics.Collectors, c) }

// Register shows the series of the API in a registry; nil means none.
func (a *API) Register(r *prometheus.Registry) error {
	if r == nil {
		return nil
	}
	return r.Register(a.metrics)
}

// Unregister removes what Register added.
func (a *API) Unregister(r *prometheus.Registry) {
	if r != nil {
		r.Unregister(a.metrics)
	}
}

// Call is one request under way. It is the context of its handler, so that the
// caller is found without a copy of the request.
type Call struct {
	context.Context // of the request
	api             *API
	gin             *gin.Context
	writer          callWriter
	conn            *conns.Conn // nil in tests without a listener
	op              *Operation  // nil: no route
	id              string      // meta.request_id
	Caller          accounts.Caller
	Rate            ratelimit.Decision // of the agent's limit, for this call; its Limit is 0 without one
	inside          bool               // run by Agent.Run: the request around it is counted, logged and authenticated
	Found           any                // what Operation.Before found, for the handler
	Challenge       string             // of a 401; empty: the usual one
	Body            []byte             // checked; of operations that have one
	headers         [6]string
	overBudget      error // refuses the call unless it repeats an earlier one
}

type callKey struct{}

// Value finds the call itself and its agent beside what the request's context holds.
func (c *Call) Value(key any) any {
	switch key {
	case callKey{}:
		return c
	case ports.AgentKey{}:
		return c.Caller.AgentID
	}
	return c.Context.Value(key)
}

// CallIn returns the call that a handler runs in.
func CallIn(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Caller returns the id of the agent that makes the request.
func Caller(ctx context.Context) string { return CallIn(ctx).Caller.AgentID }

// Spender returns the key that makes a call, for whose budget counts what it buys.
func Spender(ctx context.Context) account.Spender { return CallIn(ctx).Caller.Spender() }

// noKey is the id of no key.
const noKey = "key_"

// KeyOf returns the key whose sessions a call asks for, which may be empty: its own where others do not exist for it.
func KeyOf(ctx context.Context, asked string) string {
	own := Spender(ctx).OwnKey()
	switch {
	case own == "" || asked == own:
		return asked
	case asked == "":
		return own
	}
	return noKey
}

// Request returns the request of the call.
func (c *Call) Request() *http.Request { return c.gin.Request }

// Query returns a parameter of the query, and whether it was given.
func (c *Call) Query(name string) (string, bool) { return c.gin.GetQuery(name) }

// BodyFields returns the names of the fields of the body, as the document has them.
func (c *Call) BodyFields() *strictjson.Names { return c.op.names.Fields }

// callWriter is the writer of a request, by which its call is found: gin would make a map for it.
type callWriter struct {
	gin.ResponseWriter
	call *Call
}

// Unwrap returns the writer behind it, for http.ResponseController.
func (w *callWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// CallOf returns the call of a gin request; observe has set it.
func CallOf(c *gin.Context) *Call {
	w, ok := c.Writer.(*callWriter)
	if !ok {
		return nil
	}
	return w.call
}

// route returns the template of the path, which holds nothing of the caller's.
func (c *Call) route() string {
	if path := c.gin.FullPath(); path != "" {
		return path
	}
	return "none"
}

// operation returns the id of the operation, which is none on an unknown route.
func (c *Call) operation() string {
	if c.op == nil {
		return "none"
	}
	return c.op.ID
}

// Header values that are the same for every answer; net/http only reads them.
var (
	contentJSON = []string{"application/json"}
	noStore     = []string{"no-store"}
	noSniff     = []string{"nosniff"}
	closing     = []string{"close"}
)

// Writer returns the writer of an answer that is no envelope.
func (c *Call) Writer() http.ResponseWriter { return waiter{c.gin.Writer, c} }

// waiter is a writer that notes when the answer begins: the client may read it slowly.
type waiter struct {
	http.ResponseWriter
	call *Call
}

// WriteHeader begins the answer.
func (w waiter) WriteHeader(status int) {
	if w.call.conn.ShouldClose() {
		w.Header()["Connection"] = closing
	}
	w.call.conn.Wait()
	w.ResponseWriter.WriteHeader(status)
}

// limitHeaderCache holds the header values that depend on the limit alone,
// by limit.
type limitHeaderCache struct{ byLimit sync.Map }

type limitHeader struct{ limit, policy []string }

func (l *limitHeaderCache) header(perMinute int) limitHeader {
	if h, ok := l.byLimit.Load(perMinute); ok {
		return h.(limitHeader)
	}
	n := strconv.Itoa(perMinute)
	h := limitHeader{limit: []string{n}, policy: []string{`"default";q=` + n + `;w=60`}}
	l.byLimit.Store(perMinute, h)
	return h
}
