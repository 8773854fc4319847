package endpoint

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/ports"
)

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

// Refuse answers an error. An error that is not a refusal of the core is a fault of
// the service: it is logged once, in full, and answered without its text.
func (a *API) Refuse(c *Call, err error) {
	e := a.RefusalOf(c, err)
	status := StatusOf[e.Kind]
	h := c.gin.Writer.Header()
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable && e.Retryable || e.RetryAfter > 0 {
		seconds := max(int64((e.RetryAfter+time.Second-1)/time.Second), 1)
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	if status == http.StatusUpgradeRequired { // RFC 9110 section 15.5.22
		h.Set("Upgrade", "TLS/1.3")
		h.Set("Connection", "Upgrade, close")
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", cmp.Or(c.Challenge, `Bearer realm="agentproxy"`))
		e = e.With("register", "POST "+a.PublicURL+Prefix+"/account/register")
	}
	e = e.With("docs", a.PublicURL+"/docs/errors.md#"+e.Code)
	a.sendRefusal(c, status, e)
}

// RefusalOf returns an error as the caller may see it.
func (a *API) RefusalOf(c *Call, err error) *domain.Error {
	var e *domain.Error
	if errors.As(err, &e) && (c.op != nil && c.op.declares(StatusOf[e.Kind], e.Code) || a.public(e)) &&
		e != errInternal {
		if e.Kind == domain.Unavailable {
			a.outages.note(c, e, err)
		}
		return e
	}
	if e == errInternal { // logged where it came from
		return e
	}
	if unavailable(err) {
		a.outages.note(c, domain.ErrUnavailable, err)
		return domain.ErrUnavailable
	}
	a.Log.LogAttrs(c, slog.LevelError, "a request failed", slog.String("request_id", c.id),
		slog.String("route", c.route()), slog.String("agent_id", c.Caller.AgentID), slog.Any("err", err))
	return errInternal
}

// public reports whether the document has the code of a refusal for some
// operation. Any other refusal is an internal fault and is not answered.
func (a *API) public(e *domain.Error) bool {
	if errors.Is(e, errNoRoute) || errors.Is(e, errNoMethod) || errors.Is(e, ErrMisdirected) ||
		errors.Is(e, ErrCrossSite) || errors.Is(e, ErrTLSRequired) {
		return true
	}
	for _, o := range a.ops {
		if o.declares(StatusOf[e.Kind], e.Code) {
			return true
		}
	}
	return false
}

// unavailable reports whether the request was given up.
func unavailable(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Refusals returns the refusal of every code that the API has, with its most general message, by code.
func (a *API) Refusals() (list []*domain.Error) {
	seen := map[string]bool{}
	add := func(e *domain.Error) {
		if !seen[e.Code] {
			seen[e.Code] = true
			list = append(list, e)
		}
	}
	for _, e := range []*domain.Error{errNoRoute, errNoMethod, ErrMisdirected, ErrTLSRequired, ErrCrossSite,
		domain.ErrInvalid} {
		add(e)
	}
	for _, id := range slices.Sorted(maps.Keys(a.ops)) {
		codes := a.ops[id].codes
		for _, status := range slices.Sorted(maps.Keys(codes)) {
			for _, e := range codes[status] {
				add(e)
			}
		}
	}
	slices.SortFunc(list, func(x, y *domain.Error) int { return strings.Compare(x.Code, y.Code) })
	return list
}

// NoteOutage counts a call that was answered 503 beside the operations, and logs why.
func (a *API) NoteOutage(c *Call, err error) { a.outages.note(c, domain.ErrUnavailable, err) }

// Refusals lists what an operation refuses with.
func Refusals(list ...*domain.Error) []*domain.Error { return list }

// And adds to a list of refusals.
func And(list []*domain.Error, more ...*domain.Error) []*domain.Error {
	return append(slices.Clone(list), more...)
}

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
