package endpoint

import (
	"context"
	"net/http"
	"reflect"

	"agentproxy/adapters/httpapi/binding"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/domain"
)

// Result is what a handler answers with.
type Result[O any] struct {
	Status   int
	Data     O
	Location string // where to poll; empty if nowhere
	Replayed bool   // the call repeats an earlier one
}

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
	a.serve(&o, func(c *Call) {
		input := new(I)
		if issues := in.Read(c.gin, c.Body, reflect.ValueOf(input).Elem()); issues != nil {
			a.Refuse(c, domain.InvalidFields(issues...))
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
		a.answerIn(c, r.Status, r.Data)
	})
}

// answerIn answers data in the form that it has, or that the caller prefers.
func (a *API) answerIn(c *Call, status int, data any) {
	switch data := data.(type) {
	case PNG:
		a.show(c, status, data)
		return
	case Text:
		a.showText(c, status, data)
		return
	}
	if c.op.CSV {
		c.gin.Writer.Header().Add("Vary", "Accept")
		if p, ok := data.(printed); ok && c.form() == openapi.HTMLType {
			a.showPage(c, status, p)
			return
		}
		if acceptsCSV(c.gin.Request) {
			a.answerCSV(c, status, data)
			return
		}
	}
	a.Answer(c, status, data)
}
