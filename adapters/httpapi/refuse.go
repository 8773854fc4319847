package httpapi

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/domain"
)

// Refusals of the transport itself.
var (
	errNoRoute = &domain.Error{Kind: domain.NotFound, Code: "NOT_FOUND",
		Message: "there is nothing at this path; GET /v1/openapi.json lists what there is"}
	errNoMethod = &domain.Error{Kind: domain.MethodNotAllowed, Code: "METHOD_NOT_ALLOWED",
		Message: "this path does not take the method; the header Allow lists those it takes"}
	errTooLarge = &domain.Error{Kind: domain.TooLarge, Code: "PAYLOAD_TOO_LARGE",
		Message: "the body is too large; send less at a time"}
	errInternal = &domain.Error{Kind: domain.Internal, Code: "INTERNAL_ERROR", Retryable: true,
		Message: "the service failed; try again, and report the request_id if it stays so"}
)

// refuse answers an error. What is no refusal of the core is ours to fix: it is
// logged once, in full, and answered without its text.
func (s *Server) refuse(c *call, err error) {
	e := s.refusalOf(c, err)
	status := statusOf[e.Kind]
	h := c.gin.Writer.Header()
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || e.RetryAfter > 0 {
		seconds := max(int64((e.RetryAfter+time.Second-1)/time.Second), 1)
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="agentproxy"`)
	}
	s.sendRefusal(c, status, e)
}

// refusalOf is an error as the caller may see it.
func (s *Server) refusalOf(c *call, err error) *domain.Error {
	var e *domain.Error
	if errors.As(err, &e) && (c.op != nil && c.op.declares(statusOf[e.Kind], e.Code) || s.public(e)) && e != errInternal {
		return e
	}
	if e == errInternal { // logged where it came from
		return e
	}
	if unavailable(err) {
		s.Log.LogAttrs(c, slog.LevelWarn, "the service is unavailable", slog.String("request_id", c.id),
			slog.String("route", c.route()), slog.Any("err", err))
		return domain.ErrUnavailable
	}
	s.Log.LogAttrs(c, slog.LevelError, "a request failed", slog.String("request_id", c.id),
		slog.String("route", c.route()), slog.String("agent_id", c.caller.AgentID), slog.Any("err", err))
	return errInternal
}

// public keeps words of the inside inside: an answer has a code that the
// document has for some operation, anything else is a fault of ours.
func (s *Server) public(e *domain.Error) bool {
	if e == errNoRoute || e == errNoMethod {
		return true
	}
	for _, o := range s.ops {
		if o.declares(statusOf[e.Kind], e.Code) {
			return true
		}
	}
	return false
}

// unavailable reports that the request was given up or the store is closed.
func unavailable(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, sql.ErrConnDone) || strings.Contains(err.Error(), "database is closed")
}

// rejected is a refusal on its way through huma.
type rejected struct{ err *domain.Error }

// Error is the text of the refusal.
func (r *rejected) Error() string { return r.err.Error() }

// GetStatus is what huma asks for; our own writer decides.
func (r *rejected) GetStatus() int { return statusOf[r.err.Kind] }

func init() {
	// huma has one such function for all APIs of a process.
	huma.NewErrorWithContext = func(_ huma.Context, status int, msg string, errs ...error) huma.StatusError {
		if status >= http.StatusInternalServerError {
			return &rejected{errInternal}
		}
		return &rejected{invalidInput(errs)}
	}
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return huma.NewErrorWithContext(nil, status, msg, errs...)
	}
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
}

// maxFields bounds how many faults one answer lists.
const maxFields = 50

// invalidInput turns the faults that huma found into ours. The values that were
// sent are left out.
func invalidInput(errs []error) *domain.Error {
	var issues []domain.FieldIssue
	for _, err := range errs {
		detailer, ok := err.(huma.ErrorDetailer)
		if !ok || len(issues) == maxFields {
			continue
		}
		issues = append(issues, issueOf(detailer.ErrorDetail()))
	}
	if issues == nil {
		return domain.ErrInvalid
	}
	return domain.InvalidFields(issues...)
}

// issueOf names a fault by the path that the caller knows: body.config.quantity
// is config.quantity, query.page is page.
func issueOf(d *huma.ErrorDetail) domain.FieldIssue {
	_, field, _ := strings.Cut(d.Location, ".")
	issue := d.Message
	if name, ok := between(issue, "expected required property ", " to be present"); ok {
		if field != "" {
			field += "."
		}
		return domain.FieldIssue{Field: field + name, Issue: "is required"}
	}
	if field == "" {
		field = d.Location
	}
	if d.Location == "body" && !strings.HasPrefix(issue, "expected") {
		// The text of encoding/json, which may repeat what was sent.
		return domain.FieldIssue{Field: "body", Issue: "does not have the expected types"}
	}
	return domain.FieldIssue{Field: field, Issue: plainIssue(issue)}
}

// plainIssue says "must be …" where huma says "expected …".
func plainIssue(issue string) string {
	switch rest, ok := strings.CutPrefix(issue, "expected "); {
	case strings.HasPrefix(issue, "required "):
		return "is required"
	case strings.HasPrefix(issue, "invalid integer"):
		return "must be an integer"
	case strings.HasPrefix(issue, "invalid boolean"):
		return "must be true or false"
	case strings.HasPrefix(issue, "invalid "):
		return "has the wrong type"
	case !ok:
		return "is not valid"
	case strings.HasPrefix(rest, "value to be "):
		return "must be " + strings.TrimPrefix(rest, "value to be ")
	case strings.HasPrefix(rest, "string to "):
		return "must " + strings.TrimPrefix(rest, "string to ")
	case strings.HasPrefix(rest, "length "), strings.HasPrefix(rest, "array length "):
		return "must have a " + inWords.Replace(strings.TrimPrefix(rest, "array "))
	case strings.HasPrefix(rest, "number "):
		return "must be a " + inWords.Replace(rest)
	case strings.HasPrefix(rest, "array"), strings.HasPrefix(rest, "object"), strings.HasPrefix(rest, "integer"):
		return "must be an " + rest
	default:
		return "must be a " + rest
	}
}

// inWords says a bound in words: JSON writes a sign of comparison as an escape.
var inWords = strings.NewReplacer(">= ", "of at least ", "<= ", "of at most ", "> ", "above ", "< ", "below ")

func between(s, before, after string) (string, bool) {
	s, ok := strings.CutPrefix(s, before)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(s, after)
}
