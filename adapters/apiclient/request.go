package apiclient

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	mathrand "math/rand/v2"
)

// request is a call of an operation.
type request struct {
	method string
	path   string   // below /v1, with {names} in the place of ids
	ids    []string // what the names are replaced with
	query  query
	body   any    // nil: none
	accept string // empty: JSON
	key    string // the Idempotency-Key; empty: none
	safe   bool   // whether it may be sent twice without a key

	text []byte  // the body as it is sent
	keep *Answer // where the answer is stored; nil: nowhere
}

// query are the parameters of a request that are not left out.
type query []struct{ name, value string }

func (q *query) text(name, value string) {
	if value != "" {
		*q = append(*q, struct{ name, value string }{name, value})
	}
}

func (q *query) number(name string, n int) {
	if n != 0 {
		q.text(name, strconv.Itoa(n))
	}
}

func (q *query) flag(name string, on bool) {
	if on {
		q.text(name, "true")
	}
}

// keyOr returns the caller's idempotency key, or else a new one.
func keyOr(key string) string {
	if key == "" {
		return rand.Text()
	}
	return key
}

// call runs an operation whose answer is an envelope, and reads its data.
func (c *Client) call(ctx context.Context, r request, data any, options []Option) error {
	a, err := c.run(ctx, &r, options)
	if err != nil {
		return err
	}
	text := a.Data()
	if text == nil {
		return &Error{Status: a.Status, Message: fmt.Sprintf("the service answered %d without JSON", a.Status)}
	}
	if err := json.Unmarshal(text, data); err != nil {
		return fmt.Errorf("read the answer of the service: %w", err)
	}
	return nil
}

// read runs an operation whose answer is not an envelope, such as a picture.
func (c *Client) read(ctx context.Context, r request, options []Option) ([]byte, error) {
	a, err := c.run(ctx, &r, options)
	return a.Body, err
}

// run sends a request of an operation. A refusal is an *Error.
func (c *Client) run(ctx context.Context, r *request, options []Option) (Answer, error) {
	for _, o := range options {
		o(r)
	}
	target := r.path
	for _, id := range r.ids {
		if id == "" || id == "." || id == ".." {
			return Answer{}, fmt.Errorf("an id in %s is %q", r.path, id)
		}
		before, rest, _ := strings.Cut(target, "{")
		_, after, _ := strings.Cut(rest, "}")
		target = before + url.PathEscape(id) + after
	}
	for i, p := range r.query {
		target += map[bool]string{true: "?", false: "&"}[i == 0] + p.name + "=" + url.QueryEscape(p.value)
	}
	if r.body != nil {
		var err error
		if r.text, err = json.Marshal(r.body); err != nil {
			return Answer{}, fmt.Errorf("encode the request: %w", err)
		}
	}
	a, err := c.send(ctx, r, c.base+target)
	if r.keep != nil {
		*r.keep = a
	}
	if err == nil && a.Status >= http.StatusMultipleChoices {
		return Answer{}, refusalOf(a)
	}
	return a, err
}

const (
	firstWait = 200 * time.Millisecond
	mostWait  = 30 * time.Second
)

// send sends a request until it is answered for good.
func (c *Client) send(ctx context.Context, r *request, target string) (Answer, error) {
	for try := 0; ; try++ {
		a, err := c.attempt(ctx, r, target)
		if try >= c.Retries || !r.safe && r.key == "" {
			return a, err
		}
		// Doubled each time, and spread so that clients do not come back together.
		wait := time.Duration(float64(firstWait) * math.Exp2(float64(min(try, 10))) * (0.5 + mathrand.Float64()/2))
		if err == nil {
			if a.Status < http.StatusMultipleChoices {
				return a, nil
			}
			e := refusalOf(a)
			if !e.Retryable {
				return a, nil
			}
			wait = max(wait, e.RetryAfter)
		}
		if !pause(ctx, wait) {
			return a, err
		}
	}
}

// pause waits, and reports whether it did: not if that takes too long.
func pause(ctx context.Context, d time.Duration) bool {
	if end, bounded := ctx.Deadline(); d > mostWait || bounded && time.Until(end) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
