package endpoint

import (
	"cmp"
	"context"
	"time"

	"agentproxy/adapters/httpapi/strictjson"
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
	OwnBody    any             // what the handler checks and binds by itself, for the document
	Published  bool            // other services have this call too: without a body of its own it ignores unknown fields
	BodyLimit  int             // bytes; 0: 1 MiB, and 16 KiB if Open
	Stores     bool            // it adds rows: an agent that had as much stored as it may is refused
	// Before runs in the call before the body is read. Its error refuses the request.
	Before func(context.Context) error

	hasBody bool
	fields  *strictjson.Names       // of the body
	query   []string                // the parameters
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
