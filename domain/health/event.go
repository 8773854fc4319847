// Package health turns telemetry into a statement about a session's current
// exit, now: a score, a risk level, a recommendation and the reason for it.
// State holds all that a session needs for it, in constant size; docs/health.md has
// the rules, rules.go their constants.
package health

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"agentproxy/domain"
)

// Type is the outcome of a request, as named in the public API.
type Type string

// The event types.
const (
	Success   Type = "success"
	HTTPError Type = "http_error"
	Captcha   Type = "captcha"
	Timeout   Type = "timeout"
	Block     Type = "block"
	RateLimit Type = "rate_limit"
	Custom    Type = "custom"
)

// types lists the event types; counters are kept in this order.
var types = [...]Type{Success, HTTPError, Captcha, Timeout, Block, RateLimit, Custom}

// Types returns the event types in the order of the public documentation.
func Types() []Type { return slices.Clone(types[:]) }

// index returns the index of a type in types, that of Custom for an unknown one.
func (t Type) index() int {
	for i := range types {
		if types[i] == t {
			return i
		}
	}
	return len(types) - 1
}

// The bounds of a telemetry event of the public API. Lengths are in
// characters.
const (
	MaxStatusCode   = 599
	MaxLatencyMS    = 600_000
	MaxHost         = 253
	MaxErrorMessage = 1000
	MaxAhead        = 5 * time.Minute // of occurred_at before the time of receipt
)

// Event is one outcome, reported by the agent or observed by the gateway.
type Event struct {
	Type       Type
	StatusCode int // 1 to MaxStatusCode; 0: no answer, or none was named
	LatencyMS  int // 0 to MaxLatencyMS; counts only with HasLatency
	HasLatency bool
	Host       string    // as CanonicalHost writes it; empty: none was named
	At         time.Time // of receipt: a report's occurred_at is only shown
}

// Scored reports whether e is evidence about the exit. Only such a report may
// take an observed event from a Ring, or a custom event would hide evidence.
func (e Event) Scored() bool {
	_, ok := e.evidence()
	return ok
}

// Good reports whether e is a scored event of cost 0: the exit worked.
func (e Event) Good() bool {
	found, ok := e.evidence()
	return ok && found.cost == 0
}

// Report is an event as an agent sent it. Nil and empty fields were absent.
type Report struct {
	Type         string
	StatusCode   *int
	LatencyMS    *int
	TargetHost   string
	ErrorMessage string
	OccurredAt   *time.Time
}

// Issues lists what is wrong with r at the time of receipt; nil when nothing is.
func (r Report) Issues(now time.Time) []domain.FieldIssue {
	var found []domain.FieldIssue
	refuse := func(field, issue string) {
		found = append(found, domain.FieldIssue{Field: field, Issue: issue})
	}
	switch {
	case r.Type == "":
		refuse("event_type", "is required")
	case !slices.Contains(types[:], Type(r.Type)):
		refuse("event_type", "must be one of success, http_error, captcha, timeout, block, rate_limit, custom")
	}
	if r.StatusCode != nil && (*r.StatusCode < 0 || *r.StatusCode > MaxStatusCode) {
		refuse("status_code", "must be a whole number from 0 to 599")
	}
	if r.LatencyMS != nil && (*r.LatencyMS < 0 || *r.LatencyMS > MaxLatencyMS) {
		refuse("latency_ms", "must be a number from 0 to 600000")
	}
	switch {
	case utf8.RuneCountInString(r.TargetHost) > MaxHost:
		refuse("target_host", "must have at most 253 characters")
	case strings.ContainsFunc(r.TargetHost, unicode.IsControl):
		refuse("target_host", "must not contain control characters")
	}
	switch {
	case utf8.RuneCountInString(r.ErrorMessage) > MaxErrorMessage:
		refuse("error_message", "must have at most 1000 characters")
	case strings.IndexByte(r.ErrorMessage, 0) >= 0: // PostgreSQL stores no text with one
		refuse("error_message", "must not contain a NUL character")
	}
	if r.OccurredAt != nil && r.OccurredAt.Sub(now) > MaxAhead {
		refuse("occurred_at", "must be at most 5 minutes in the future")
	}
	return found
}

// CanonicalHost writes a host so that what an agent calls it and what the
// gateway dialled compare equal: lower case, without port, brackets and the
// final dot, at most 253 bytes.
func CanonicalHost(host string) string {
	host = strings.ToLower(strings.TrimSpace(host))
	if rest, ok := strings.CutPrefix(host, "["); ok {
		if addr, _, closed := strings.Cut(rest, "]"); closed {
			host = addr
		}
	} else if name, port, ok := strings.Cut(host, ":"); ok && strings.Trim(port, "0123456789") == "" {
		host = name
	}
	return clip(strings.TrimSuffix(host, "."), MaxHost)
}

// clip cuts s to at most size bytes, between two characters.
func clip(s string, size int) string {
	if len(s) <= size {
		return s
	}
	for size > 0 && !utf8.RuneStart(s[size]) {
		size--
	}
	return s[:size]
}
