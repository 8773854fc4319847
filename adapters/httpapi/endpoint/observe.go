package endpoint

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/lograte"
)

const headerRequestID = "X-Request-Id"

// observe surrounds every request: it gives it an id, turns a panic into an
// answer, and writes the one line of the access log.
func (a *API) observe(c *gin.Context) {
	start := time.Now()
	ctx := c.Request.Context()
	call := &Call{Context: ctx, api: a, gin: c, conn: conns.Of(ctx), id: a.IDs.New("req_")}
	if outer := outerCall(ctx); outer != nil {
		call.inside, call.Caller, call.conn, call.id = true, outer.Caller, nil, outer.id
		call.Rate = outer.Rate
	}
	call.writer = callWriter{c.Writer, call}
	c.Writer = &call.writer
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
			a.metrics.count(call.operation(), c.Writer.Status(), start)
			a.logRequest(call, start)
		}
	}()
	c.Next()
}

// agentKey finds the call that an operation runs for in the context of the operation.
type agentKey struct{}

// outerCall returns the call that an operation runs for, or nil.
func outerCall(ctx context.Context) *Call {
	outer, _ := ctx.Value(agentKey{}).(*Call)
	return outer
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

// refusalsLogged is how many requests that are refused with 401, 404 or 429 are logged in a second. Any stranger can
// send thousands, which cost nothing but the disk of the log.
const refusalsLogged = 100

// servedLogged is how many requests that are served within slow are logged in a second, which is 10 GB a day. Failures,
// and what is slow, are all logged.
const (
	servedLogged = 500
	slow         = time.Second
)

// sampled returns what bounds the lines of requests with a status; nil for those that are all logged.
func (a *API) sampled(status int, took time.Duration) *lograte.Limiter {
	switch {
	case status == http.StatusNotFound, status == http.StatusUnauthorized, status == http.StatusTooManyRequests:
		return a.refused
	case status < http.StatusBadRequest && took < slow:
		return a.served
	}
	return nil
}

// logRequest writes the line. Neither the query nor the path is in it: callers
// put secrets into both.
func (a *API) logRequest(c *Call, start time.Time) {
	if !a.Log.Enabled(c, slog.LevelInfo) {
		return
	}
	status, now := c.gin.Writer.Status(), a.Clock.Now()
	if limit := a.sampled(status, time.Since(start)); limit != nil && !limit.Allow("", now) {
		return
	}
	if n := a.served.LeftOut("", now); n > 0 {
		a.Log.LogAttrs(c, slog.LevelInfo, "served requests were left out of the log", slog.Int("count", n))
	}
	if n := a.refused.LeftOut("", now); n > 0 {
		a.Log.LogAttrs(c, slog.LevelInfo, "refused requests were left out of the log", slog.Int("count", n))
	}
	a.Log.LogAttrs(c, slog.LevelInfo, "request",
		slog.String("method", method(c.gin.Request.Method)),
		slog.String("route", c.route()),
		slog.Int("status", status),
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

// Run runs an operation inside the process for the agent of a call. Its path is relative to Prefix and may
// have a query, key is its Idempotency-Key or empty. It returns the HTTP status and the body of the answer.
// It neither counts the request nor checks the permission again.
func (a *API) Run(ctx context.Context, c *Call, method, path, key string, body []byte) (int, []byte, error) {
	ctx = context.WithValue(ctx, agentKey{}, c)
	r, err := http.NewRequestWithContext(ctx, method, Prefix+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Host, r.RemoteAddr = c.gin.Request.Host, c.gin.Request.RemoteAddr
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	a.Engine.ServeHTTP(w, r)
	return w.status, w.body.Bytes(), nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the headers of the answer.
func (r *recorder) Header() http.Header { return r.header }

// Write adds to the body.
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// WriteHeader keeps the status.
func (r *recorder) WriteHeader(status int) { r.status = status }
