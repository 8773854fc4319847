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
			a.outages.note(c, c.id, c.route(), e, err)
		}
		return e
	}
	if e == errInternal { // logged where it came from
		return e
	}
	if unavailable(err) {
		a.outages.note(c, c.id, c.route(), domain.ErrUnavailable, err)
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
func (a *API) NoteOutage(c *Call, err error) {
	a.outages.note(c, c.id, c.route(), domain.ErrUnavailable, err)
}
