package endpoint

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"
)

// adapter puts huma's operations on the gin group, behind our own steps.
type adapter struct {
	api   *API
	group *gin.RouterGroup
}

// Handle registers the route of an operation.
func (a adapter) Handle(h *huma.Operation, handler func(huma.Context)) {
	path := strings.NewReplacer("{", ":", "}", "").Replace(h.Path)
	o := a.api.ops[h.OperationID]
	serve := func(g *gin.Context) {
		c := CallOf(g)
		for _, p := range g.Params {
			if p.Value == "" { // a path such as /sessions//usage, which gin takes
				a.api.refuseRoute(g)
				return
			}
		}
		c.op = o
		if err := a.api.admit(c); err != nil {
			a.api.Refuse(c, err)
			return
		}
		handler(&humaContext{ginContext: humagin.NewContext(h, g), call: c})
	}
	a.group.Handle(h.Method, path, serve)
	if h.Method == http.MethodGet && !o.Once { // the server leaves out the body
		a.group.Handle(http.MethodHead, path, serve)
	}
}

// ServeHTTP serves the whole engine.
func (a adapter) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.api.Engine.ServeHTTP(w, r) }

// admit does what comes before the handler: credentials, limits, and the
// judgement of what was sent.
func (a *API) admit(c *Call) error {
	o := c.op
	if o.Open && o.Method != http.MethodGet && !c.inside && a.CrossSite != nil && a.CrossSite(c.gin.Request) {
		return ErrCrossSite
	}
	if !o.Open && !c.inside {
		if err := a.Identify(c); err != nil {
			return err
		}
		if o.Scope != "" {
			if err := c.Caller.May(o.Scope); err != nil {
				return err
			}
		}
	}
	if o.Stores {
		if err := a.mayStore(c); err != nil {
			return err
		}
	}
	if err := o.checkQuery(c.gin.Request.URL.RawQuery); err != nil {
		return err
	}
	if o.Idempotent {
		if err := checkKeyHeader(c.gin.Request.Header); err != nil {
			return err
		}
	}
	if o.Before != nil {
		if err := o.Before(c); err != nil {
			return err
		}
	}
	if o.hasBody || o.Method != http.MethodGet && c.gin.Request.ContentLength != 0 {
		if err := a.readBody(c); err != nil {
			return err
		}
	}
	c.conn.Work()
	return nil
}

// mayStore refuses a call that adds rows for an agent that had as much stored as it may. A dry run adds none, and
// one under an Idempotency-Key may repeat an earlier call, which has its answer: it is refused where it is found to be
// the first.
func (a *API) mayStore(c *Call) error {
	if dry, _ := c.Query("dry_run"); dry == "true" {
		return nil
	}
	err := a.Limits.Stored.Check(c, c.Caller.AgentID)
	if err != nil && c.op.Idempotent && c.gin.GetHeader("Idempotency-Key") != "" {
		c.overBudget = err
		return nil
	}
	return err
}

// ginContext is huma's own view of a gin request, under a name to embed.
type ginContext = huma.Context

// humaContext shows huma a request whose body was read and checked already.
type humaContext struct {
	ginContext
	call *Call
	body bodyReader
}

// Context returns a context with the call, from which handlers read the caller.
func (h *humaContext) Context() context.Context { return h.call }

// Unwrap gives huma's helpers the context below.
func (h *humaContext) Unwrap() huma.Context { return h.ginContext }

// Header hides the Content-Type, which is not checked, and Accept: there is one
// format.
func (h *humaContext) Header(name string) string {
	switch name {
	case "Content-Type":
		return "application/json"
	case "Accept":
		return ""
	}
	return h.ginContext.Header(name)
}

// SetStatus keeps huma from setting a status after the answer.
func (h *humaContext) SetStatus(status int) {
	if !h.call.gin.Writer.Written() {
		h.ginContext.SetStatus(status)
	}
}

// SetReadDeadline does nothing: the body was read.
func (h *humaContext) SetReadDeadline(time.Time) error { return nil }

// bodyReader reads a checked body.
type bodyReader struct{ bytes.Reader }

// BodyReader gives huma the checked body.
func (h *humaContext) BodyReader() io.Reader {
	h.body.Reset(h.call.Body)
	return &h.body
}

// callWriter is the writer of huma's own answers; it carries the call.
type callWriter struct {
	io.Writer
	call *Call
}

// BodyWriter lets marshalForHuma find the call.
func (h *humaContext) BodyWriter() io.Writer {
	return &callWriter{Writer: h.ginContext.BodyWriter(), call: h.call}
}
