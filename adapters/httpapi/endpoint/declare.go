package endpoint

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/gin-gonic/gin"

	"agentproxy/adapters/httpapi/binding"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/domain"
	"agentproxy/domain/session"
)

// Declare declares an operation and its handler, which is called with valid input and
// returns the status and the data, or an error. Declare alone writes the envelope.
func Declare[I, O any](a *API, o Operation, handle func(context.Context, *I) (int, O, error)) {
	DeclareResult(a, o, func(ctx context.Context, in *I) (Result[O], error) {
		status, data, err := handle(ctx, in)
		return Result[O]{Status: status, Data: data}, err
	})
}

// DeclareResult is like Declare for a handler that decides about headers too.
func DeclareResult[I, O any](a *API, o Operation, handle func(context.Context, *I) (Result[O], error)) {
	in := binding.Of(reflect.TypeFor[I](), a.doc.Components.Schemas, o.ID)
	a.declare(&o, in)
	listed, reads := itemsField[O]()
	reads = reads && o.Method == http.MethodGet && !o.Open
	isAny := reflect.TypeFor[O]().Kind() == reflect.Interface
	a.serve(&o, func(c *Call) {
		input := new(I)
		if issues := in.Read(c.gin, c.Body, reflect.ValueOf(input).Elem()); issues != nil {
			a.Refuse(c, domain.InvalidFields(issues...))
			return
		}
		if err := readParts(c, input); err != nil {
			a.Refuse(c, err)
			return
		}
		r, err := handle(c, input)
		if err != nil {
			a.Refuse(c, err)
			return
		}
		if reads {
			a.chargeRead(c, reflect.ValueOf(r.Data).Field(listed).Len())
		}
		if r.Location != "" {
			c.gin.Header("Location", r.Location)
		}
		if r.Replayed {
			c.gin.Header("Idempotency-Replayed", "true")
		}
		data := any(&r.Data)
		if isAny {
			data = r.Data
		}
		a.answerIn(c, r.Status, data)
	})
}

// readParts reads the parts that inputs embed, each of which is more than one parameter.
func readParts(c *Call, input any) error {
	if id, given := c.gin.Params.Get("session_id"); given && (len(id) > maxID || !strictjson.IsName(id)) {
		return session.ErrNotFound
	}
	if p, has := input.(interface{ readPage(c *Call) error }); has {
		if err := p.readPage(c); err != nil {
			return err
		}
	}
	if i, has := input.(interface{ readKey(c *Call) error }); has {
		if err := i.readKey(c); err != nil {
			return err
		}
	}
	if t, has := input.(interface{ readDry(c *Call) error }); has {
		return t.readDry(c)
	}
	return nil
}

// maxID is the length of the longest text that can be an id.
const maxID = 64

// itemsField finds the list in an answer.
func itemsField[O any]() (index int, found bool) {
	t := reflect.TypeFor[O]()
	if t.Kind() != reflect.Struct {
		return 0, false
	}
	f, found := t.FieldByName("Items")
	if !found || f.Type.Kind() != reflect.Slice || len(f.Index) != 1 {
		return 0, false
	}
	return f.Index[0], true
}

// serve adds the route of an operation.
func (a *API) serve(o *Operation, handle func(*Call)) {
	path := Prefix + strings.NewReplacer("{", ":", "}", "").Replace(o.Path)
	serve := func(g *gin.Context) {
		c := CallOf(g)
		for _, p := range g.Params {
			if p.Value == "" { // a path such as /sessions//usage, which gin takes
				a.refuseRoute(g)
				return
			}
		}
		c.op = o
		if err := a.admit(c); err != nil {
			a.Refuse(c, err)
			return
		}
		if o.Usage && a.Book != nil {
			_ = a.Book(c, c.Caller.AgentID)
		}
		handle(c)
	}
	a.Engine.Handle(o.Method, path, serve)
	if o.Method == http.MethodGet && !o.Once { // the server leaves out the body
		a.Engine.Handle(http.MethodHead, path, serve)
	}
}
