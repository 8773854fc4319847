// Package mcp serves the tools of agents by the Model Context Protocol, with the official Go SDK. One
// table declares the tools; a Backend runs the operations of the API that they consist of, so that
// POST /mcp and a client over stdio have the same tools, rules and errors. No answer holds a secret.
package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/connect"
)

// Backend runs operations of the API for one agent.
type Backend interface {
	// May reports whether the agent's credential has a permission.
	May(scope string) bool
	// Run runs an operation. The path is relative to /v1 and may have a query; key is the
	// Idempotency-Key or empty. It returns the HTTP status and the body. An error means that there
	// is not an answer: the operation may have been executed.
	Run(ctx context.Context, method, path, key string, body []byte) (status int, answer []byte, err error)
	// StoreCredentials puts the credentials of a session where a program finds them and a model does
	// not: behind a link that works once until the time returned, or in a file, without a time.
	StoreCredentials(ctx context.Context, sessionID string) (where string, until time.Time, err error)
	// Reveal returns the credentials for the answer itself, if the operator allows that.
	Reveal(ctx context.Context, sessionID string) (list []connect.Proxy, allowed bool, err error)
}

// refusal is the text of an answer with isError.
type refusal struct {
	Code      string         `json:"code"`
	Message   string         `json:"message"`
	HowToFix  string         `json:"how_to_fix"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details,omitempty"`
}

// Error returns the code and the message.
func (r *refusal) Error() string { return r.Code + ": " + r.Message }

// envelope is an answer of the API.
type envelope struct {
	Success bool            `json:"success"`
	Data    json.RawMessage `json:"data"`
	Error   *refusal        `json:"error"`
	Meta    struct {
		Timestamp time.Time `json:"timestamp"`
	} `json:"meta"`
}

// api calls the operations for one call of a tool.
type api struct {
	Backend
	secrets *secrets  // that were received during the call
	now     time.Time // by the service's clock, when it answered last
}

// get reads an operation's answer into v.
func (a *api) get(ctx context.Context, path string, query url.Values, v any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return a.call(ctx, http.MethodGet, path, "", nil, v)
}

// post runs an operation that changes something. A nil body is an empty object.
func (a *api) post(ctx context.Context, path, key string, body, v any) error {
	text := []byte("{}")
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	return a.call(ctx, http.MethodPost, path, key, text, v)
}

func (a *api) call(ctx context.Context, method, path, key string, body []byte, v any) error {
	_, answer, err := a.Run(ctx, method, path, key, body)
	if err != nil {
		return unanswered(err)
	}
	var e envelope
	if err := decode(answer, &e); err != nil || !e.Success && e.Error == nil {
		return &refusal{Code: "SERVICE_UNAVAILABLE", Message: "the service did not answer with JSON", Retryable: true}
	}
	if e.Error != nil {
		return e.Error
	}
	a.now = e.Meta.Timestamp
	return decode(e.Data, v)
}

// decode keeps the digits of numbers.
func decode(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// Refuse returns an error of Backend.Run that a tool answers as it is: what went wrong between it and the service, and
// how to mend that.
func Refuse(code, message, howToFix string, retryable bool) error {
	return &refusal{Code: code, Message: message, HowToFix: howToFix, Retryable: retryable}
}

// unanswered returns the refusal of a call without an answer. The text of another error than a refusal is not shown:
// it may have the address of a local file or host.
func unanswered(err error) error {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	code, message := "SERVICE_UNAVAILABLE", "the service cannot be reached"
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		code, message = "TIMEOUT", "the service did not answer in time"
	}
	return &refusal{Code: code, Message: message, Retryable: true,
		HowToFix: "Call the tool again with the same arguments; with the same purchase_id it buys once."}
}

// refusalOf returns an error as the agent may read it.
func refusalOf(err error) *refusal {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		d, ok := errors.AsType[*domain.Error](err)
		if !ok {
			return &refusal{Code: "INTERNAL_ERROR", Message: "the service failed", Retryable: true,
				HowToFix: "Call the tool again with the same arguments."}
		}
		r = &refusal{Code: d.Code, Message: d.Message, Retryable: d.Retryable, Details: d.Details}
	}
	c := *r
	if c.HowToFix == "" {
		c.HowToFix = fixOf(c.Code, c.Retryable)
	}
	return &c
}

// fixes are what to do about the codes that a tool helps with.
var fixes = map[string]string{
	"AUTH_INSUFFICIENT_PERMISSION": "Use a credential that has the permission named in details.required.",
	"BUDGET_EXCEEDED":              "Buy less, or let the account's owner raise the budget: no tool can.",
	"KEY_RESTRICTED":               "Do without it: this key is restricted, and no tool changes that.",
	"INSUFFICIENT_BALANCE":         "Call recharge, pay the order, and call again; or buy less after quote.",
	"IDEMPOTENCY_CONFLICT":         "Use a new purchase_id for a new purchase; to repeat one, send the same arguments.",
	"INVALID_REQUEST":              "Correct the arguments that message and details name and call the tool again.",
	"PRICE_MISMATCH":               "Raise max_cost if the cost in details is acceptable, or buy less.",
	"PRODUCT_NOT_FOUND":            "Call find_products and use a product_no that it lists.",
	"EXIT_QUALITY_NOT_MET":         "Ask for less in require, or choose another place or product.",
	"PRODUCT_OUT_OF_STOCK":         "Call find_products and choose another product or place.",
	"SESSION_EXPIRED":              "Call create_session for a new session.",
	"SESSION_LIMIT_REACHED":        "Call end_session for a session that is not needed.",
	"SESSION_NOT_FOUND":            "Call list_sessions and use a session_id that it lists.",
	"SESSION_NOT_READY":            "Call get_session until its status is active.",
	"WORKER_LIMIT_REACHED":         "Use a worker that the session has: connect shows how.",
	"WORKER_NOT_FOUND":             "A worker is made by its first use: name it in connect and send a request through it.",
	"TIER_REQUIRED":                "Call find_products for another product; the account's owner may get the tier.",
}

func fixOf(code string, retryable bool) string {
	switch fix := fixes[code]; {
	case fix != "":
		return fix
	case retryable:
		return "Wait a moment and call the tool again with the same arguments."
	}
	return "Do what message asks for and call the tool again."
}
