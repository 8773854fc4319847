package procurement

import (
	"errors"
	"time"
)

// Class classifies a failed call of a provider by what it proves about the
// request.
type Class string

// The classes. All but Ambiguous prove that the request was not executed.
const (
	OutOfStock        Class = "out_of_stock"
	InsufficientFunds Class = "insufficient_funds" // the operator's, at the provider
	Auth              Class = "auth"               // our credentials were rejected
	RateLimited       Class = "rate_limited"
	Temporary         Class = "temporary" // not executed; may work later
	TimedOut          Class = "timed_out" // no response to a read, or to a call that was not executed
	Ambiguous         Class = "ambiguous" // may have been executed
	Invalid           Class = "invalid"   // the provider rejects the request
	NotFound          Class = "not_found"
	Conflict          Class = "conflict"
	Unsupported       Class = "unsupported"
)

// Error is a failed call of a provider.
type Error struct {
	Class      Class
	Reason     string        // the provider's message, at most 200 characters, without secrets
	RetryAfter time.Duration // RateLimited: the least delay before a retry
}

func (e *Error) Error() string {
	if e.Reason == "" {
		return "provider: " + string(e.Class)
	}
	return "provider: " + string(e.Class) + ": " + e.Reason
}

// Refuse returns an error of a class with the provider's message, shortened to
// 200 characters.
func Refuse(c Class, reason string) *Error {
	if r := []rune(reason); len(r) > 200 {
		reason = string(r[:200])
	}
	return &Error{Class: c, Reason: reason}
}

// ClassOf returns the class of a call's error, empty for nil. An error without
// a class is Ambiguous: it proves nothing.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Ambiguous
}

// ReasonOf returns the provider's message, or the empty string. It may be shown
// to the operator.
func ReasonOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// ProvenClass returns the class of a failed call that buys nothing.
func ProvenClass(err error) Class {
	if c := ClassOf(err); c != Ambiguous {
		return c
	}
	return Temporary
}
