package endpoint

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/app/accounts"
	"agentproxy/ports"
)

// Call is one request under way. It is the context of its handler, so that the
// caller is found without a copy of the request.
type Call struct {
	context.Context // of the request
	gin             *gin.Context
	conn            *conns.Conn // nil in tests without a listener
	op              *Operation  // nil: no route
	id              string      // meta.request_id
	Caller          accounts.Caller
	inside          bool   // run by Agent.Run: the request around it is counted, logged and authenticated
	Found           any    // what Operation.Before found, for the handler
	Challenge       string // of a 401; empty: the usual one
	Body            []byte // checked; of operations that have one
	headers         [6]string
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

// Request returns the request of the call.
func (c *Call) Request() *http.Request { return c.gin.Request }

// Query returns a parameter of the query, and whether it was given.
func (c *Call) Query(name string) (string, bool) { return c.gin.GetQuery(name) }

// BodyFields returns the names of the fields of the body, as the document has them.
func (c *Call) BodyFields() strictjson.Names { return c.op.fields }

const ginCallKey = "call"

// CallOf returns the call of a gin request; observe has set it.
func CallOf(c *gin.Context) *Call {
	v, _ := c.Get(ginCallKey)
	got, _ := v.(*Call)
	return got
}

const headerRequestID = "X-Request-Id"

// observe surrounds every request: it gives it an id, turns a panic into an
// answer, and writes the one line of the access log.
func (a *API) observe(c *gin.Context) {
	start := time.Now()
	ctx := c.Request.Context()
	call := &Call{Context: ctx, gin: c, conn: conns.Of(ctx), id: a.IDs.New("req_")}
	if outer := outerCall(ctx); outer != nil {
		call.inside, call.Caller, call.conn, call.id = true, outer.Caller, nil, outer.id
	}
	c.Set(ginCallKey, call)
	if a.Trace != nil {
		traced, end := a.Trace(c.Request, method(c.Request.Method), call.route(), call.id)
		call.Context, c.Request = traced, c.Request.WithContext(traced)
		defer func() { end(c.Writer.Status()) }()
	}
	call.headers[0] = call.id
	c.Writer.Header()[headerRequestID] = call.headers[0:1:1]
	defer func() {
		if fault := recover(); fault != nil {
			a.panicked(call, fault)
		}
		if !call.inside {
			a.metrics.count(call, start)
			a.logRequest(call, start)
		}
	}()
	c.Next()
}

// panicked answers a request whose handler panicked.
func (a *API) panicked(c *Call, fault any) {
	if fault == http.ErrAbortHandler {
		panic(fault)
	}
	a.Log.LogAttrs(c, slog.LevelError, "a handler panicked", slog.String("request_id", c.id),
		slog.String("route", c.route()), slog.Any("panic", fault), slog.String("stack", string(debug.Stack())))
	if c.gin.Writer.Written() {
		panic(http.ErrAbortHandler) // half an answer: cut the connection
	}
	a.Refuse(c, errInternal)
}

// route returns the template of the path, which holds nothing of the caller's.
func (c *Call) route() string {
	if path := c.gin.FullPath(); path != "" {
		return path
	}
	return "none"
}

// logRequest writes the line. Neither the query nor the path is in it: callers
// put secrets into both.
func (a *API) logRequest(c *Call, start time.Time) {
	if !a.Log.Enabled(c, slog.LevelInfo) {
		return
	}
	a.Log.LogAttrs(c, slog.LevelInfo, "request",
		slog.String("method", method(c.gin.Request.Method)),
		slog.String("route", c.route()),
		slog.Int("status", c.gin.Writer.Status()),
		slog.Duration("duration", time.Since(start)),
		slog.String("request_id", c.id),
		slog.String("agent_id", c.Caller.AgentID),
		slog.String("client", a.ClientAddr(c.gin.Request).String()),
		slog.Int("bytes", max(c.gin.Writer.Size(), 0)))
}

// method returns a method as the log may show it: any token is valid HTTP.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead,
		http.MethodOptions, http.MethodPatch, http.MethodTrace, http.MethodConnect:
		return m
	}
	return "other"
}
