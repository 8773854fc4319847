package procurement

import (
	"errors"
	"time"
)

// Class says what a failed call of a provider means for what was asked.
type Class string

// All but Ambiguous prove that nothing was done.
const (
	OutOfStock        Class = "out_of_stock"
	InsufficientFunds Class = "insufficient_funds" // ours, at the provider
	Auth              Class = "auth"               // the provider knows our credential no more
	RateLimited       Class = "rate_limited"
	Temporary         Class = "temporary" // not executed; may work later
	TimedOut          Class = "timed_out" // not executed, or only a read: no answer came
	Ambiguous         Class = "ambiguous" // executed or not
	Invalid           Class = "invalid"   // the provider does not take what we ask for
	NotFound          Class = "not_found"
	Conflict          Class = "conflict"
	Unsupported       Class = "unsupported"
)

// Error is a failed call of a provider.
type Error struct {
	Class      Class
	Reason     string        // in the provider's words, at most 200 characters, without secrets
	RetryAfter time.Duration // RateLimited: not before
}

func (e *Error) Error() string {
	if e.Reason == "" {
		return "provider: " + string(e.Class)
	}
	return "provider: " + string(e.Class) + ": " + e.Reason
}

// Refuse is an error of a class and the provider's words for it.
func Refuse(c Class, reason string) *Error {
	if r := []rune(reason); len(r) > 200 {
		reason = string(r[:200])
	}
	return &Error{Class: c, Reason: reason}
}

// ClassOf is the class of a call's error; empty for nil. What nobody classified
// is Ambiguous: it proves nothing.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Ambiguous
}

// ReasonOf is what a provider said, fit to be shown to the operator.
func ReasonOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}
