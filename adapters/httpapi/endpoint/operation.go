package endpoint

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"time"

	"agentproxy/adapters/httpapi/binding"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

// The limits of a body, and the time in which one of a client without a credential has to
// arrive: many of them at once must not fill the memory.
const (
	bodyLimit     = 1 << 20
	openBodyLimit = 16 << 10
	openBodyTime  = 4 * time.Second
)

// KeyRule is what an operation is to a restricted key.
type KeyRule int

// The rules. An operation that names none is for free keys alone, so that a new one is closed until it does.
const (
	FreeKeys   KeyRule = iota // refused to every restricted key
	WholeKeys                 // shows or changes the account: refused to a key that sees its own sessions alone
	OwnSession                // on the session of its path, which does not exist for a key that did not buy it and has own
	AnyKey                    // shows what is the same for all, or narrows to the key by itself
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
	Keys       KeyRule       // which restricted keys it is for
	OK         []Reply
	Refuses    []*domain.Error // beside those that every operation of its kind has
	Example    any             // of the request body
	Idempotent bool            // takes an Idempotency-Key
	EmptyBody  bool            // the body may be left out
	CSV        bool            // the items of the answer are written as CSV on request
	Once       bool            // a GET that answers once: HEAD, which a preview sends, is refused
	OwnBody    any             // what the handler checks and binds by itself, for the document
	Published  bool            // other services have this call too: without a body of its own it ignores unknown fields
	BodyLimit  int             // bytes; 0: 1 MiB, and 16 KiB if Open
	Stores     bool            // it adds rows: an agent that had as much stored as it may is refused
	// Before runs in the call before the body is read. Its error refuses the request.
	Before func(context.Context) error

	hasBody bool
	names   *binding.Names          // of the query and the body
	codes   map[int][]*domain.Error // every refusal, by status
}

// Reply is one way to succeed. Data is an example and gives the schema; Or is
// another shape under the same status.
type Reply struct {
	Status int
	Doc    string
	Data   any
	Or     any
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

// bodyLimit returns how many bytes a body may have.
func (o *Operation) bodyLimit() int {
	if o.Open {
		return cmp.Or(o.BodyLimit, openBodyLimit)
	}
	return cmp.Or(o.BodyLimit, bodyLimit)
}

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
