package apiclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// ErrNoAnswer is in the error of a call that the service did not answer: what was asked for may have been done.
var ErrNoAnswer = errors.New("call the service")

// Code is why the service refused a call. It is an error, so that errors.Is(err, ErrSessionNotFound) asks for one.
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// Error is a refusal of the service.
type Error struct {
	Code       Code   // empty if something between client and service answered
	Message    string // for people
	Status     int    // of HTTP
	Retryable  bool   // whether the same call may succeed later
	RetryAfter time.Duration
	Details    json.RawMessage // an object that some codes add
	RequestID  string          // for the operator of the service
}

// Error returns the code and the message.
func (e *Error) Error() string {
	if e.Code == "" {
		return e.Message
	}
	return string(e.Code) + ": " + e.Message
}

// Is matches a Code, and an *Error with the same one.
func (e *Error) Is(target error) bool {
	switch t := target.(type) {
	case Code:
		return e.Code == t
	case *Error:
		return e.Code == t.Code && e.Code != ""
	}
	return false
}

// refusalOf returns the refusal in an answer.
func refusalOf(a Answer) *Error {
	var envelope struct {
		Error *struct {
			Code      Code            `json:"code"`
			Message   string          `json:"message"`
			Retryable bool            `json:"retryable"`
			Details   json.RawMessage `json:"details"`
		} `json:"error"`
		Meta Meta `json:"meta"`
	}
	e := &Error{Status: a.Status}
	if seconds, err := strconv.Atoi(a.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(min(seconds, 1<<31)) * time.Second
	}
	if json.Unmarshal(a.Body, &envelope) != nil || envelope.Error == nil {
		e.Message = fmt.Sprintf("the service answered %d without JSON", a.Status)
		switch a.Status {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			e.Retryable = true
		}
		return e
	}
	e.Code, e.Message, e.Retryable = envelope.Error.Code, envelope.Error.Message, envelope.Error.Retryable
	e.Details, e.RequestID = envelope.Error.Details, envelope.Meta.RequestID
	return e
}
