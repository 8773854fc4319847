package endpoint

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/openapi"
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
	h := a.declare(&o)
	h.RequestBody = &huma.RequestBody{}
	listed, reads := itemsField[O]()
	reads = reads && o.Method == http.MethodGet && !o.Open
	huma.Register(a.huma, h, func(ctx context.Context, in *I) (*struct{}, error) {
		c := CallIn(ctx)
		r, err := handle(ctx, in)
		if err != nil {
			a.Refuse(c, err)
			return nil, nil
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
		switch data := any(r.Data).(type) {
		case PNG:
			a.show(c, r.Status, data)
		case Text:
			a.showText(c, r.Status, data)
		default:
			if o.CSV {
				c.gin.Writer.Header().Add("Vary", "Accept")
				if p, ok := data.(printed); ok && c.form() == openapi.HTMLType {
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
