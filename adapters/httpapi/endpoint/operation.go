package endpoint

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

// Operation declares one route. The document, the validation and the refusals are
// made from it.
type Operation struct {
	ID      string
	Method  string
	Path    string // relative to Prefix
	Tag     string
	Summary string
	Doc     string // details beyond the summary

	Open       bool          // takes no credential
	Scope      account.Scope // that a token needs; empty: any token does
	OK         []Reply
	Refuses    []*domain.Error // beside those that every operation of its kind has
	Example    any             // of the request body
	Idempotent bool            // takes an Idempotency-Key
	EmptyBody  bool            // the body may be left out
	CSV        bool            // the items of the answer are written as CSV on request
	Once       bool            // a GET that answers once: HEAD, which a preview sends, is refused
	OwnBody    any             // what the handler checks and binds by itself, for the document; huma gets no body then
	BodyLimit  int             // bytes; 0: 1 MiB, and 16 KiB if Open
	// Before runs before the body is read. Its error refuses the request.
	Before func(*Call) error

	hasBody        bool
	fields         strictjson.Names        // of the body
	query          []string                // the parameters
	validatesQuery bool                    // a query can be refused
	codes          map[int][]*domain.Error // every refusal, by status
}

// Reply is one way to succeed. Data is an example and gives the schema; Or is
// another shape under the same status.
type Reply struct {
	Status int
	Doc    string
	Data   any
	Or     any
}

// The limits of a body, and the time in which one of a client without a credential has to
// arrive: many of them at once must not fill the memory.
const (
	bodyLimit     = 1 << 20
	openBodyLimit = 16 << 10
	openBodyTime  = 4 * time.Second
)

// Result is what a handler answers with.
type Result[O any] struct {
	Status   int
	Data     O
	Location string // where to poll; empty if nowhere
	Replayed bool   // the call repeats an earlier one
}

// Declare declares an operation and its handler, which is called with valid input and
// returns the status and the data, or an error. op alone writes the envelope.
func Declare[I, O any](a *API, o Operation, handle func(context.Context, *I) (int, O, error)) {
	DeclareResult(a, o, func(ctx context.Context, in *I) (Result[O], error) {
		status, data, err := handle(ctx, in)
		return Result[O]{Status: status, Data: data}, err
	})
}

// DeclareResult is like op for a handler that decides about headers too.
func DeclareResult[I, O any](a *API, o Operation, handle func(context.Context, *I) (Result[O], error)) {
	h := a.declare(&o)
	h.RequestBody = &huma.RequestBody{}
	huma.Register(a.huma, h, func(ctx context.Context, in *I) (*struct{}, error) {
		c := CallIn(ctx)
		r, err := handle(ctx, in)
		if err != nil {
			a.Refuse(c, err)
			return nil, nil
		}
		if r.Location != "" {
			c.gin.Header("Location", r.Location)
		}
		if r.Replayed {
			c.gin.Header("Idempotency-Replayed", "true")
		}
		switch data := any(r.Data).(type) {
		case PNG:
			a.show(c, r.Status, data)
		case Text:
			a.showText(c, r.Status, data)
		default:
			if o.CSV {
				c.gin.Writer.Header().Add("Vary", "Accept")
				if p, ok := data.(printed); ok &&
					Negotiate(c.gin.Request.Header.Get("Accept"), openapi.JSONType, csvType, openapi.HTMLType) == openapi.HTMLType {
					a.showPage(c, r.Status, p)
					return nil, nil
				}
				if acceptsCSV(c.gin.Request) {
					a.answerCSV(c, r.Status, r.Data)
					return nil, nil
				}
			}
			a.Answer(c, r.Status, r.Data)
		}
		return nil, nil
	})
	a.documentOp(&o)
}

// declares reports whether the document has a refusal.
func (o *Operation) declares(status int, code string) bool {
	for _, e := range o.codes[status] {
		if e.Code == code {
			return true
		}
	}
	return false
}

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
	if o.validatesQuery {
		if err := o.checkQuery(c.gin.Request.URL.RawQuery); err != nil {
			return err
		}
	}
	if o.Before != nil {
		if err := o.Before(c); err != nil {
			return err
		}
	}
	if o.hasBody {
		if err := a.readBody(c); err != nil {
			return err
		}
	}
	c.conn.Work()
	return nil
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
