// Package rest is the HTTP client that the adapters of sellers share: it calls a
// JSON API with retries, a rate limit and a circuit breaker, and maps what can go
// wrong to a procurement.Error.
package rest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/sony/gobreaker/v2"

	"agentproxy/domain/procurement"
)

const (
	defaultTimeout = 20 * time.Second
	maxAnswer      = 4 << 20 // bytes
	maxAttempts    = 3       // of a call that is Safely repeated
	maxBackoff     = 200 * time.Millisecond
	breakerTrips   = 5 // consecutive failures
	breakerRests   = 30 * time.Second
)

// Repeat states whether a call may be executed more than once.
type Repeat uint8

const (
	// Once is for calls that may spend money. They are sent once, and fail with
	// Ambiguous unless they provably were not executed.
	Once Repeat = iota
	// Safely is for idempotent calls. They are retried after a failure on the way.
	Safely
)

// Config describes a seller's API.
type Config struct {
	Name   string // of the provider, for logs
	Base   string // URL without a trailing slash; it may contain a secret
	Header http.Header
	// Hide are secrets that never appear in an error or a log. HideLike matches
	// those that the seller generates.
	Hide      []string
	HideLike  *regexp.Regexp
	PerSecond float64       // calls; 0: 5
	Timeout   time.Duration // of a call with all its attempts; 0: 20 s
	// MoneyTimeout is the timeout of calls that are sent Once; 0: Timeout. A seller that
	// works while the caller waits executes a call that was given up too.
	MoneyTimeout time.Duration
	Log          *slog.Logger // may be nil
	// Explain classifies an answer that is a failure although its status may be a
	// success. It returns nil if the status decides; the function itself may be nil.
	Explain func(status int, header http.Header, body []byte) *procurement.Error
}

// Client calls a seller's API. It may be used by many goroutines.
type Client struct {
	Config
	HTTP    *http.Client
	pace    *Pace
	breaker *gobreaker.TwoStepCircuitBreaker[any]
	secrets *strings.Replacer
}

// New returns a client with a connection pool and a circuit breaker of its own.
func New(c Config) *Client {
	if c.PerSecond == 0 {
		c.PerSecond = 5
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.MoneyTimeout == 0 {
		c.MoneyTimeout = c.Timeout
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	var pairs []string
	for _, secret := range c.Hide {
		if secret != "" {
			pairs = append(pairs, secret, "[hidden]", url.PathEscape(secret), "[hidden]", url.QueryEscape(secret), "[hidden]")
		}
	}
	r := &Client{Config: c, pace: NewPace(c.PerSecond), secrets: strings.NewReplacer(pairs...),
		HTTP: &http.Client{
			// A redirect would repeat the body elsewhere, or carry the key there.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
				DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
				TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10},
		}}
	r.breaker = gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{Name: c.Name, Timeout: breakerRests,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= breakerTrips }})
	return r
}

// Paced returns a client with a rate limit of its own that shares the connections and the
// circuit breaker of c. A nil explain keeps that of c.
func (c *Client) Paced(pace *Pace, explain func(int, http.Header, []byte) *procurement.Error) *Client {
	other := *c
	other.pace = pace
	if explain != nil {
		other.Explain = explain
	}
	return &other
}

// Ready reports whether the circuit breaker lets calls through.
func (c *Client) Ready() bool { return c.breaker.State() != gobreaker.StateOpen }

// Call sends a request with in as its JSON body and decodes the answer into out.
// Both may be nil. Its error is a *procurement.Error.
func (c *Client) Call(ctx context.Context, how Repeat, method, path string, in, out any) error {
	return c.CallWith(ctx, how, method, path, nil, in, out)
}

// CallWith is like Call with additional header fields.
func (c *Client) CallWith(ctx context.Context, how Repeat, method, path string, header http.Header, in, out any) error {
	timeout := c.Timeout
	if how == Once {
		timeout = c.MoneyTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return procurement.Refuse(procurement.Invalid, "the request cannot be written as JSON")
		}
	}
	attempts := 1
	if how == Safely {
		attempts = maxAttempts
	}
	ctx, end := c.traced(ctx, method)
	var err *procurement.Error
	defer func() { end(err) }()
	for n := range attempts {
		if err = c.attempt(ctx, how, method, path, header, body, out); err == nil {
			return nil
		}
		again := err.Class == procurement.Temporary || err.Class == procurement.TimedOut
		if !again || n == attempts-1 || !Sleep(ctx, time.Duration(n+1)*c.backoff()) {
			break
		}
	}
	c.Log.Warn("a provider's call failed", "provider", c.Name, "method", method, "class", string(err.Class), "err",
		err.Reason)
	return err
}

// backoff returns the pause before the second attempt: the interval of the rate limit,
// but at most maxBackoff.
func (c *Client) backoff() time.Duration {
	return min(time.Duration(float64(time.Second)/c.PerSecond), maxBackoff)
}

// Sleep blocks for d. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt makes one request. Every failure before it is sent proves that nothing
// was executed.
func (c *Client) attempt(ctx context.Context, how Repeat, method, path string, header http.Header, body []byte,
	out any) *procurement.Error {
	if late := c.pace.Wait(ctx, how == Once); late != nil {
		return late
	}
	done, err := c.breaker.Allow()
	if err != nil {
		return procurement.Refuse(procurement.Temporary, "the circuit breaker of the seller is open after repeated failures")
	}
	a, failed := c.send(ctx, how, method, path, header, body)
	if failed == nil {
		failed = c.classify(how, a, out)
	}
	if failed == nil {
		done(nil)
		return nil
	}
	failed.Reason = string(c.Redact([]byte(failed.Reason)))
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // by the caller, which is not a fault of the seller
		done(nil)
	case failed.Class == procurement.Temporary, failed.Class == procurement.TimedOut,
		failed.Class == procurement.Ambiguous, failed.Class == procurement.Auth:
		done(failed)
	default:
		done(nil)
	}
	return failed
}

// Redact replaces secrets in a text. It is applied before a text is cut, which may
// leave half of a secret.
func (c *Client) Redact(b []byte) []byte {
	if c.HideLike != nil {
		b = c.HideLike.ReplaceAll(b, []byte("[hidden]"))
	}
	return []byte(c.secrets.Replace(string(b)))
}
