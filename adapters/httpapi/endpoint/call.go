package endpoint

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/app/accounts"
	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// Call is one request under way. It is the context of its handler, so that the
// caller is found without a copy of the request.
type Call struct {
	context.Context // of the request
	api             *API
	gin             *gin.Context
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

// Request returns the request of the call.
func (c *Call) Request() *http.Request { return c.gin.Request }

// Query returns a parameter of the query, and whether it was given.
func (c *Call) Query(name string) (string, bool) { return c.gin.GetQuery(name) }

// BodyFields returns the names of the fields of the body, as the document has them.
func (c *Call) BodyFields() *strictjson.Names { return c.op.names.Fields }

const ginCallKey = "call"

// CallOf returns the call of a gin request; observe has set it.
func CallOf(c *gin.Context) *Call {
	v, _ := c.Get(ginCallKey)
	got, _ := v.(*Call)
	return got
}

const headerRequestID = "X-Request-Id"

// route returns the template of the path, which holds nothing of the caller's.
func (c *Call) route() string {
	if path := c.gin.FullPath(); path != "" {
		return path
	}
	return "none"
}

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

// agentKey finds the call that an operation runs for in the context of the operation.
type agentKey struct{}

// outerCall returns the call that an operation runs for, or nil.
func outerCall(ctx context.Context) *Call {
	outer, _ := ctx.Value(agentKey{}).(*Call)
	return outer
}
