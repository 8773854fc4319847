package endpoint

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"agentproxy/adapters/httpapi/binding"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/ports"
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
	Usage      bool            // its answer has bytes of sessions, or money that follows from them
	// Before runs in the call before the body is read. Its error refuses the request.
	Before func(context.Context) error

	hasBody bool
	names   *binding.Names          // of the query and the body
	codes   map[int][]*domain.Error // every refusal, by status
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

// Reply is one way to succeed. Data is an example and gives the schema; Or is
// another shape under the same status.
type Reply struct {
	Status int
	Doc    string
	Data   any
	Or     any
}

// Result is what a handler answers with.
type Result[O any] struct {
	Status   int
	Data     O
	Location string // where to poll; empty if nowhere
	Replayed bool   // the call repeats an earlier one
}

// Refusals of the transport itself.
var (
	errNoRoute = &domain.Error{Kind: domain.NotFound, Code: "NOT_FOUND",
		Message: "there is nothing at this path; GET /llms.txt describes what there is"}
	errNoMethod = &domain.Error{Kind: domain.MethodNotAllowed, Code: "METHOD_NOT_ALLOWED",
		Message: "this path does not take the method; details.allow lists those it takes"}
	ErrMisdirected = &domain.Error{Kind: domain.Misdirected, Code: "MISDIRECTED_REQUEST",
		Message: "this port serves the API and is not a proxy; connect to the gateway, the address in proxy.full_url"}
	ErrTLSRequired = &domain.Error{Kind: domain.UpgradeRequired, Code: "TLS_REQUIRED",
		Message: "this port takes TLS alone; use the https address"}
	ErrCrossSite = &domain.Error{Kind: domain.Forbidden, Code: "CROSS_SITE_REQUEST",
		Message: "a web page of another site must not call this service; call it from a program"}
	errTooLarge = &domain.Error{Kind: domain.TooLarge, Code: "PAYLOAD_TOO_LARGE",
		Message: "the body is too large; send less at a time"}
	errInternal = &domain.Error{Kind: domain.Internal, Code: "INTERNAL_ERROR", Retryable: true,
		Message: "the service failed; try again, and report the request_id if the problem persists"}
)

// Refusals with the details that they always have, as the document shows them.
var (
	errInvalid = domain.ErrInvalid.With("fields", []domain.FieldIssue{
		{Field: "config.quantity", Issue: "must be a whole number from 1 to 100"},
	})
	ErrScope = account.ErrScope.With("required", string(account.SessionsWrite))
)

// StatusOf gives each kind of refusal its status.
var StatusOf = map[domain.Kind]int{
	domain.Internal:         http.StatusInternalServerError,
	domain.Invalid:          http.StatusBadRequest,
	domain.Unauthorized:     http.StatusUnauthorized,
	domain.PaymentRequired:  http.StatusPaymentRequired,
	domain.Forbidden:        http.StatusForbidden,
	domain.NotFound:         http.StatusNotFound,
	domain.MethodNotAllowed: http.StatusMethodNotAllowed,
	domain.Misdirected:      http.StatusMisdirectedRequest,
	domain.Conflict:         http.StatusConflict,
	domain.Gone:             http.StatusGone,
	domain.TooLarge:         http.StatusRequestEntityTooLarge,
	domain.RateLimited:      http.StatusTooManyRequests,
	domain.BadGateway:       http.StatusBadGateway,
	domain.Unavailable:      http.StatusServiceUnavailable,
	domain.UpstreamTimeout:  http.StatusGatewayTimeout,
	domain.UpgradeRequired:  http.StatusUpgradeRequired,
}

// OutcomeStatus is the HTTP status of an outcome.
var OutcomeStatus = map[ports.Outcome]int{
	ports.Completed: http.StatusOK,
	ports.Created:   http.StatusCreated,
	ports.Pending:   http.StatusAccepted,
}

// Refusals lists what an operation refuses with.
func Refusals(list ...*domain.Error) []*domain.Error { return list }

// And adds to a list of refusals.
func And(list []*domain.Error, more ...*domain.Error) []*domain.Error {
	return append(slices.Clone(list), more...)
}
