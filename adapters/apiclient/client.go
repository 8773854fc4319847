// Package apiclient calls the public API: it has a method for each operation of the OpenAPI document, and types for
// what they take and answer. It needs the standard library alone.
//
//	c, err := apiclient.New("https://proxy.example.com", os.Getenv("AGENTPROXY_API_KEY"))
//	s, err := c.CreateSession(ctx, apiclient.CreateSession{Type: apiclient.SessionTypeDynamic,
//		Config: apiclient.CreateConfig{ProductNo: "dyn_residential", TrafficGB: "1", MaxCost: "5"}})
//	if errors.Is(err, apiclient.ErrInsufficientBalance) { … }
//	for s, err := range c.AllSessions(ctx, apiclient.ListSessions{}) { … }
//
// A refusal is an *Error. Requests that may be sent twice are repeated by themselves; see Client. Amounts and GB are
// json.Number, so that no digit is lost. No error has a credential in its text.
package apiclient

//go:generate go test . -run TestTheCodeIsThatOfTheDocument -update

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls one service with one credential. It may be used by several goroutines; its fields may be changed
// before the first call.
//
// It repeats a request whose answer was lost, or whose refusal is retryable, if that cannot do the same twice: one
// that only reads, and one with an idempotency key, which the client makes where the caller gives none. It waits as
// long as Retry-After asks for, and never longer than 30 seconds or than the context lasts.
type Client struct {
	// HTTP sends the requests. That of New uses no proxy of the environment, which may be a session that this very
	// client bought, and follows no redirect, which would send the key elsewhere.
	HTTP *http.Client
	// Retries bounds how often a request is repeated; New sets 3.
	Retries int

	base string // with /v1
	key  string
}

const (
	timeout   = 2 * time.Minute // of an attempt: a provider may be slow to deliver
	maxAnswer = 8 << 20         // bytes
)

// New returns a client of the service at a URL, with or without /v1, and an error if the URL cannot be one. It
// connects to nothing. The key is an API key, an access token, or empty for operations that need none.
func New(serviceURL, key string) (*Client, error) {
	u, err := url.Parse(serviceURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return nil, errors.New("the URL of the service must be http:// or https:// and a host, such as http://127.0.0.1:8080")
	}
	return &Client{
		HTTP: &http.Client{
			Timeout:       timeout,
			Transport:     &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 20 * time.Second},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		Retries: 3,
		base:    strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), "/v1") + "/v1",
		key:     key,
	}, nil
}

// String returns the address without the key.
func (c *Client) String() string { return "the API at " + c.base }

// GoString returns what String returns, so that no verb of fmt prints the key.
func (c *Client) GoString() string { return c.String() }

// Answer is what the service answered to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Data returns what is in the envelope of the answer, as the service wrote it: nothing in that of a refusal.
func (a Answer) Data() json.RawMessage {
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal(a.Body, &envelope) // without JSON there is none
	return envelope.Data
}

// Option changes one call.
type Option func(*request)

// Keep stores the answer of the call, a refusal included: its headers, and its body as the service wrote it.
func Keep(a *Answer) Option { return func(r *request) { r.keep = a } }

// Do sends a request to a path below /v1, repeats it as Client describes, and returns the answer, which may be a
// refusal. The methods for the operations are easier to use. An error means that there is no answer: what was asked
// for may have been done, and ErrNoAnswer is what it wraps.
func (c *Client) Do(ctx context.Context, method, path, idempotencyKey string, body []byte) (Answer, error) {
	r := &request{method: method, safe: method == http.MethodGet || method == http.MethodHead, key: idempotencyKey,
		text: body}
	return c.send(ctx, r, c.base+path)
}

// attempt sends a request once.
func (c *Client) attempt(ctx context.Context, r *request, target string) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.text))
	if err != nil {
		return Answer{}, errors.New("the request has an invalid method or path")
	}
	switch {
	case strings.HasPrefix(c.key, "ak_"):
		req.Header.Set("X-API-Key", c.key)
	case c.key != "":
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for name, value := range map[string]string{"Accept": r.accept, "Idempotency-Key": r.key} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if len(r.text) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the path, which may hold the token of a reveal link
		}
		return Answer{}, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return Answer{}, fmt.Errorf("%w: read the answer: %w", ErrNoAnswer, err)
	}
	if len(text) > maxAnswer {
		return Answer{}, fmt.Errorf("%w: the answer has more than %d bytes", ErrNoAnswer, maxAnswer)
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: text}, nil
}
