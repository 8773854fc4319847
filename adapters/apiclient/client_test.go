package apiclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/adapters/apiclient"
)

const (
	apiKey  = "ak_0123456789abcdef"
	done    = `{"success":true,"data":{"session_id":"sess_1"},"error":null}`
	session = "sess_1"
)

func refusal(code string, retryable bool) string {
	return fmt.Sprintf(`{"success":false,"data":null,"error":{"code":%q,"message":"try again","retryable":%t,
		"details":{"cost":1.50}},"meta":{"request_id":"req_1","timestamp":"2026-05-15T12:00:00.000Z"}}`, code, retryable)
}

// reply is an answer of the service; with an error there is none.
type reply struct {
	status     int
	retryAfter string
	body       string
	err        error
}

// script answers one request after the other, the last answer again and again.
type script struct {
	replies []reply
	keys    []string // the Idempotency-Key of each request
	began   time.Time
	at      []time.Duration
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	s.at = append(s.at, time.Since(s.began))
	next := s.replies[min(len(s.keys), len(s.replies))-1]
	if next.err != nil {
		return nil, next.err
	}
	h := http.Header{}
	if next.retryAfter != "" {
		h.Set("Retry-After", next.retryAfter)
	}
	return &http.Response{StatusCode: next.status, Header: h, Body: io.NopCloser(strings.NewReader(next.body)), Request: r}, nil
}

// scripted returns a client of a script.
func scripted(t *testing.T, replies ...reply) (*apiclient.Client, *script) {
	t.Helper()
	c, err := apiclient.New("http://api.test/v1/", apiKey)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{replies: replies, began: time.Now()}
	c.HTTP = &http.Client{Transport: s}
	return c, s
}

func TestRetries(t *testing.T) {
	lost := reply{err: io.ErrUnexpectedEOF}
	busy := reply{status: 503, body: refusal("SERVICE_UNAVAILABLE", true)}
	limited := reply{status: 429, retryAfter: "7", body: refusal("RATE_LIMIT_EXCEEDED", true)}
	good := reply{status: 200, body: done}
	get := func(ctx context.Context, c *apiclient.Client) error {
		_, err := c.GetSession(ctx, session)
		return err
	}
	buy := func(ctx context.Context, c *apiclient.Client) error {
		_, err := c.CreateSession(ctx, apiclient.CreateSession{})
		return err
	}
	end := func(ctx context.Context, c *apiclient.Client) error {
		_, err := c.TerminateSession(ctx, session)
		return err
	}
	reveal := func(ctx context.Context, c *apiclient.Client) error {
		_, err := c.RevealCredentials(ctx, "token", apiclient.RevealCredentials{})
		return err
	}
	for name, is := range map[string]struct {
		replies  []reply
		call     func(context.Context, *apiclient.Client) error
		deadline time.Duration
		sent     int
		code     error // of the result; nil: it succeeds
		after    time.Duration
	}{
		"a read whose answer is lost is repeated":        {replies: []reply{lost, good}, call: get, sent: 2},
		"a retryable refusal of a read is repeated":      {replies: []reply{busy, busy, good}, call: get, sent: 3},
		"a purchase is repeated, since it has a key":     {replies: []reply{lost, busy, good}, call: buy, sent: 3},
		"what Retry-After asks for is waited":            {replies: []reply{limited, good}, call: get, sent: 2, after: 7 * time.Second},
		"a request without a key is sent once":           {replies: []reply{busy, good}, call: end, sent: 1, code: apiclient.ErrServiceUnavailable},
		"its lost answer is not asked for again":         {replies: []reply{lost, good}, call: end, sent: 1, code: io.ErrUnexpectedEOF},
		"a link that works once is asked for once":       {replies: []reply{lost, good}, call: reveal, sent: 1, code: io.ErrUnexpectedEOF},
		"other refusals are not repeated":                {replies: []reply{{status: 404, body: refusal("SESSION_NOT_FOUND", false)}}, call: get, sent: 1, code: apiclient.ErrSessionNotFound},
		"the number of retries is bounded":               {replies: []reply{busy}, call: get, sent: 4, code: apiclient.ErrServiceUnavailable},
		"nothing waits beyond the deadline":              {replies: []reply{limited}, call: get, deadline: 5 * time.Second, sent: 1, code: apiclient.ErrRateLimitExceeded},
		"nothing waits as long as a minute":              {replies: []reply{{status: 503, retryAfter: "60", body: busy.body}}, call: get, sent: 1, code: apiclient.ErrServiceUnavailable},
		"the answer of a balancer that is gone is lost":  {replies: []reply{{status: 502, body: "<html>"}, good}, call: get, sent: 2},
		"the answer of another program is an error":      {replies: []reply{{status: 404, body: "<html>"}}, call: get, sent: 1, code: &apiclient.Error{}},
		"an answer without JSON is an error":             {replies: []reply{{status: 200, body: "<html>"}}, call: get, sent: 1, code: &apiclient.Error{}},
		"a redirect is not followed with the key":        {replies: []reply{{status: 302, body: ""}}, call: get, sent: 1, code: &apiclient.Error{}},
		"a context that ends stops it":                   {replies: []reply{{err: context.Canceled}}, call: canceled(get), sent: 1, code: context.Canceled},
		"a dry run may be repeated although it is keyed": {replies: []reply{busy, good}, call: dryRun, sent: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := scripted(t, is.replies...)
				ctx := t.Context()
				if is.deadline != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, is.deadline)
					defer cancel()
				}
				err := is.call(ctx, c)
				if len(s.keys) != is.sent {
					t.Errorf("%d requests were sent, want %d", len(s.keys), is.sent)
				}
				if _, any := is.code.(*apiclient.Error); any {
					if e, ok := errors.AsType[*apiclient.Error](err); !ok || e.Code != "" || e.Status == 0 {
						t.Errorf("the error is %v", err)
					}
				} else if !errors.Is(err, is.code) {
					t.Errorf("the error is %v, want %v", err, is.code)
				}
				if last := s.at[len(s.at)-1]; last < is.after {
					t.Errorf("the last request came after %v, want %v", last, is.after)
				}
			})
		})
	}
}

func dryRun(ctx context.Context, c *apiclient.Client) error {
	_, err := c.CreateSessionDryRun(ctx, apiclient.CreateSession{})
	return err
}

func canceled(call func(context.Context, *apiclient.Client) error) func(context.Context, *apiclient.Client) error {
	return func(ctx context.Context, c *apiclient.Client) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return call(ctx, c)
	}
}

// TestAKeyIsTheSameAtEveryAttempt holds for the caller's key and for one that the client makes.
func TestAKeyIsTheSameAtEveryAttempt(t *testing.T) {
	keys := map[string]bool{}
	for _, own := range []string{"mine", "", ""} {
		synctest.Test(t, func(t *testing.T) {
			c, s := scripted(t, reply{err: io.ErrUnexpectedEOF}, reply{status: 201, body: done})
			got, err := c.CreateSession(t.Context(), apiclient.CreateSession{IdempotencyKey: own})
			if err != nil || got.SessionID != session || len(s.keys) != 2 {
				t.Fatalf("%v, %v after %d requests", got, err, len(s.keys))
			}
			if s.keys[0] != s.keys[1] || s.keys[0] == "" || own != "" && s.keys[0] != own {
				t.Errorf("the keys are %q", s.keys)
			}
			keys[s.keys[0]] = true
		})
	}
	if len(keys) != 3 {
		t.Errorf("two purchases have one key: %v", keys)
	}
}

func TestARefusalIsAValue(t *testing.T) {
	c, _ := scripted(t, reply{status: 409, retryAfter: "3", body: refusal("PRICE_MISMATCH", false)})
	var kept apiclient.Answer
	_, err := c.RenewSession(t.Context(), session, apiclient.RenewSession{MaxCost: "1"}, apiclient.Keep(&kept))
	if !errors.Is(err, apiclient.ErrPriceMismatch) || errors.Is(err, apiclient.ErrSessionNotFound) ||
		!errors.Is(err, &apiclient.Error{Code: apiclient.ErrPriceMismatch}) || errors.Is(err, &apiclient.Error{}) {
		t.Errorf("%v is not compared by its code", err)
	}
	e, ok := errors.AsType[*apiclient.Error](err)
	if !ok || e.Status != 409 || e.Retryable || e.RetryAfter != 3*time.Second || e.RequestID != "req_1" ||
		string(e.Details) != `{"cost":1.50}` || e.Error() != "PRICE_MISMATCH: try again" {
		t.Errorf("the refusal is %+v", e)
	}
	if kept.Status != 409 || !strings.Contains(string(kept.Body), "PRICE_MISMATCH") {
		t.Errorf("the answer that was kept is %d %s", kept.Status, kept.Body)
	}
}

// TestNoErrorHasASecret covers the key, and the path of a reveal link, which is a credential.
func TestNoErrorHasASecret(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	c, err := apiclient.New(gone.URL, apiKey)
	if err != nil {
		t.Fatal(err)
	}
	c.Retries = 0
	_, err = c.RevealCredentials(t.Context(), "secret-token", apiclient.RevealCredentials{})
	if err == nil {
		t.Fatal("a server that is gone answered")
	}
	shown := err.Error() + fmt.Sprintf("%v %+v %#v %s", c, c, c, c)
	for _, secret := range []string{apiKey, "secret-token"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%q is in %s", secret, shown)
		}
	}
	c, _ = scripted(t)
	if _, err := c.GetSession(t.Context(), ".."); err == nil || c.String() != "the API at http://api.test/v1" {
		t.Errorf("an id that is a path: %v of %s", err, c)
	}
	for _, wrong := range []string{"", "api.test", "ftp://api.test", "http://me:secret@api.test", "http://api.test?key=secret"} {
		if c, err := apiclient.New(wrong, ""); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s makes %v, %v", wrong, c, err)
		}
	}
}

// TestTheKeyStaysWithTheService answers a redirect, which must not get the key; a proxy of the environment is not used.
func TestTheKeyStaysWithTheService(t *testing.T) {
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a stranger was called") }))
	defer stranger.Close()
	var got http.Header
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		http.Redirect(w, r, stranger.URL, http.StatusTemporaryRedirect)
	}))
	defer service.Close()
	for key, header := range map[string]string{apiKey: "X-Api-Key", "eyJ.token": "Authorization", "": "none"} {
		c, err := apiclient.New(service.URL, key)
		if err != nil {
			t.Fatal(err)
		}
		if c.HTTP.Transport.(*http.Transport).Proxy != nil {
			t.Error("the environment names the proxy")
		}
		_, err = c.GetBalance(t.Context())
		if e, ok := errors.AsType[*apiclient.Error](err); !ok || e.Status != http.StatusTemporaryRedirect {
			t.Errorf("a redirect is answered with %v", err)
		}
		if has := strings.Contains(fmt.Sprint(got[header]), key); !has || key == "" && (got["Authorization"] != nil || got["X-Api-Key"] != nil) {
			t.Errorf("%q is sent in %v", key, got)
		}
	}
}

func TestAChangeIsLeftOutSetOrCleared(t *testing.T) {
	text, err := json.Marshal(apiclient.UpdateAccount{ContactEmail: apiclient.Null[string](), Description: apiclient.Set("")})
	if err != nil || string(text) != `{"contact_email":null,"description":""}` {
		t.Errorf("%s %v", text, err)
	}
}
