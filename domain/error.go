// Package domain holds the words that every other package shares: the error
// that crosses layers, money, and a page of a list. It imports the standard
// library only and does no IO.
package domain

import (
	"fmt"
	"time"
)

// Kind sorts refusals for transports: each kind has one status on the wire.
type Kind uint8

// The kinds of refusal. Internal is the zero value, so that an unclassified
// Error is treated as a fault of the service.
const (
	Internal Kind = iota
	Invalid
	Unauthorized
	PaymentRequired
	Forbidden
	NotFound
	MethodNotAllowed
	Misdirected
	Conflict
	Gone
	TooLarge
	RateLimited
	BadGateway
	Unavailable
	UpstreamTimeout
	UpgradeRequired
)

// Error is a refusal that a caller can act on. Kind is for transports, Code is
// public API, Message is for people and names the next step.
type Error struct {
	Kind       Kind
	Code       string
	Message    string
	Details    map[string]any
	Retryable  bool
	RetryAfter time.Duration // 0 if no time is given

	origin *Error // the error that this one is a copy of, nil for a sentinel
}

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Is reports whether e descends from target by Msgf, With or After. A copy
// matches its sentinel and each error that the sentinel was copied from; two
// sentinels that share a Code do not match.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	if !ok {
		return false
	}
	for e != nil && e != t {
		e = e.origin
	}
	return e != nil
}

// derive returns a copy of e that descends from e.
func (e *Error) derive() *Error {
	c := *e
	c.origin = e
	return &c
}

// Msgf returns a copy of e with another message.
func (e *Error) Msgf(format string, args ...any) *Error {
	c := e.derive()
	c.Message = fmt.Sprintf(format, args...)
	return c
}

// With returns a copy of e with one more detail.
func (e *Error) With(key string, value any) *Error {
	c := e.derive()
	c.Details = make(map[string]any, len(e.Details)+1)
	for k, v := range e.Details {
		c.Details[k] = v
	}
	c.Details[key] = value
	return c
}

// After returns a copy of e that asks the caller to try again after d.
func (e *Error) After(d time.Duration) *Error {
	c := e.derive()
	c.RetryAfter = d
	return c
}

// Refusals that are not specific to a package.
var (
	ErrInvalid = &Error{Kind: Invalid, Code: "INVALID_REQUEST",
		Message: "the request is not valid; correct the fields named in details and send it again"}
	ErrIdempotencyConflict = &Error{Kind: Conflict, Code: "IDEMPOTENCY_CONFLICT",
		Message: "this Idempotency-Key was used for another request; use a new key for a new request"}
	ErrUnavailable = &Error{Kind: Unavailable, Code: "SERVICE_UNAVAILABLE", Retryable: true, RetryAfter: time.Second,
		Message: "the service cannot answer right now; try again shortly"}
)

// FieldIssue names what is wrong with one field, by its JSON path.
type FieldIssue struct {
	Field string
	Issue string
}

// InvalidFields returns ErrInvalid with the faults of a body. The message names
// the first one for human readers.
func InvalidFields(issues ...FieldIssue) *Error {
	e := ErrInvalid
	if len(issues) > 0 {
		e = e.Msgf("%s %s", issues[0].Field, issues[0].Issue)
	}
	return e.With("fields", issues)
}

// InvalidField returns InvalidFields for a single fault.
func InvalidField(field, format string, args ...any) *Error {
	return InvalidFields(FieldIssue{Field: field, Issue: fmt.Sprintf(format, args...)})
}
