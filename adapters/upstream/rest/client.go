package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"agentproxy/domain/procurement"
)

// Bounds of a call of a seller's API.
const (
	restTimeout  = 20 * time.Second
	maxAnswer    = 4 << 20
	readTries    = 3
	breakerTrips = 5                // failures in a row
	breakerRests = 30 * time.Second // before one call tries again
)

// repeat says how often a call may be executed.
type repeat uint8

// once: a call that may spend money. It is sent once, and Ambiguous unless it
// provably was not executed. safely: a call that may be executed any number of
// times; it is tried again when it fails on the way.
const (
	once repeat = iota
	safely
)

// restConfig is how to reach a seller's API.
type restConfig struct {
	Base   string // without a slash at the end; may contain a secret
	Header http.Header
	// Hide are the secrets, which never appear in an error or a log; HideLike is
	// the form of those that the seller makes.
	Hide      []string
	HideLike  *regexp.Regexp
	PerSecond float64       // calls; 0: 5
	Timeout   time.Duration // of a call, all tries together; 0: 20 s
	Log       *slog.Logger
	Name      string // of the provider
	// Explain reads an answer that is not a success, or is one only by its status.
	// Nil: the status alone decides.
	Explain func(status int, header http.Header, body []byte) *procurement.Error
}

// rest calls a seller's JSON API.
type rest struct {
	restConfig
	client  *http.Client
	limit   *rate.Limiter
	breaker *gobreaker.TwoStepCircuitBreaker[any]
	hide    *strings.Replacer
}

func newREST(c restConfig) *rest {
	if c.PerSecond == 0 {
		c.PerSecond = 5
	}
	if c.Timeout == 0 {
		c.Timeout = restTimeout
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
	r := &rest{restConfig: c, limit: rate.NewLimiter(rate.Limit(c.PerSecond), 1), hide: strings.NewReplacer(pairs...),
		client: &http.Client{
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

// Ready is false while the seller is left alone.
func (r *rest) Ready() bool { return r.breaker.State() != gobreaker.StateOpen }

// answer is what a call brought.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// call sends a request and decodes the answer into out, which may be nil. Its
// error is a *procurement.Error.
func (r *rest) call(ctx context.Context, how repeat, method, path string, in, out any) error {
	return r.callWith(ctx, how, method, path, nil, in, out)
}

// callWith is call with header fields of its own.
func (r *rest) callWith(ctx context.Context, how repeat, method, path string, header http.Header, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return procurement.Refuse(procurement.Invalid, "the request cannot be written as JSON")
		}
	}
	tries := 1
	if how == safely {
		tries = readTries
	}
	var err *procurement.Error
	for n := range tries {
		if err = r.try(ctx, how, method, path, header, body, out); err == nil {
			return nil
		}
		again := err.Class == procurement.Temporary || err.Class == procurement.TimedOut
		if !again || n == tries-1 || !pause(ctx, time.Duration(n+1)*200*time.Millisecond) {
			break
		}
	}
	r.Log.Warn("a provider's call failed", "provider", r.Name, "method", method, "class", string(err.Class), "err", err.Reason)
	return err
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// try is one request. Before it is sent every failure proves that nothing was
// done.
func (r *rest) try(ctx context.Context, how repeat, method, path string, header http.Header, body []byte, out any) *procurement.Error {
	if err := r.limit.Wait(ctx); err != nil {
		return procurement.Refuse(procurement.Temporary, "no turn within the seller's rate limit")
	}
	done, err := r.breaker.Allow()
	if err != nil {
		return procurement.Refuse(procurement.Temporary, "the seller is left alone after repeated failures")
	}
	a, failed := r.send(ctx, how, method, path, header, body)
	if failed == nil {
		failed = r.judge(how, a, out)
	}
	if failed == nil {
		done(nil)
		return nil
	}
	failed.Reason = string(r.hidden([]byte(failed.Reason)))
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // the caller left: not the seller's fault
		done(nil)
	case failed.Class == procurement.Temporary, failed.Class == procurement.TimedOut, failed.Class == procurement.Ambiguous, failed.Class == procurement.Auth:
		done(failed)
	default:
		done(nil)
	}
	return failed
}

func (r *rest) send(ctx context.Context, how repeat, method, path string, header http.Header, body []byte) (a answer, failed *procurement.Error) {
	var in io.Reader
	if body != nil {
		in = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.Base+path, in)
	if err != nil {
		return a, procurement.Refuse(procurement.Invalid, "the request cannot be made")
	}
	for _, h := range []http.Header{r.Header, header} {
		for k, v := range h {
			req.Header[k] = v
		}
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if how == once {
		// The transport would send a body again that it can read again, when there
		// is an Idempotency-Key: a refusal of the second proves nothing of the first.
		req.GetBody = nil
	}
	res, err := r.client.Do(req)
	if err != nil {
		return a, r.lost(how, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return a, r.lost(how, err)
	}
	if len(text) > maxAnswer {
		return a, r.doubt(how, "the answer is too long")
	}
	return answer{res.StatusCode, res.Header, text}, nil
}

// lost classifies a call that brought no answer. The text of a *url.Error is
// never shown: it repeats the URL.
func (r *rest) lost(how repeat, err error) *procurement.Error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return procurement.Refuse(procurement.Temporary, "no connection: "+plain(op.Err.Error()))
	}
	_, dns := errors.AsType[*net.DNSError](err)
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	if dns || cert || authority || record {
		return procurement.Refuse(procurement.Temporary, "no connection: "+plain(err.Error()))
	}
	if how == once {
		return procurement.Refuse(procurement.Ambiguous, "no answer came")
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return procurement.Refuse(procurement.TimedOut, "no answer came in time")
	}
	return procurement.Refuse(procurement.Temporary, "the connection broke")
}

// doubt is an answer that tells nothing.
func (r *rest) doubt(how repeat, reason string) *procurement.Error {
	if how == once {
		return procurement.Refuse(procurement.Ambiguous, reason)
	}
	return procurement.Refuse(procurement.Temporary, reason)
}

// hidden is a text without secrets. It is taken before a text is cut, which may
// leave half of a secret.
func (r *rest) hidden(b []byte) []byte {
	if r.HideLike != nil {
		b = r.HideLike.ReplaceAll(b, []byte("[hidden]"))
	}
	return []byte(r.hide.Replace(string(b)))
}

// judge reads an answer. What the adapter does not explain is told by the status.
func (r *rest) judge(how repeat, a answer, out any) *procurement.Error {
	told := r.hidden(a.body)
	if r.Explain != nil {
		if e := r.Explain(a.status, a.header, told); e != nil {
			if how == once && e.Class == procurement.TimedOut {
				e.Class = procurement.Ambiguous
			}
			return e
		}
	}
	words := "status " + strconv.Itoa(a.status) + ": " + plain(string(told[:min(len(told), 1024)]))
	switch {
	case a.status >= 200 && a.status < 300:
		if out == nil {
			return nil
		}
		if err := json.Unmarshal(a.body, out); err != nil {
			return r.doubt(how, "the answer is not of a shape that is known")
		}
		return nil
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		return procurement.Refuse(procurement.Auth, words)
	case a.status == http.StatusNotFound, a.status == http.StatusGone:
		return procurement.Refuse(procurement.NotFound, words)
	case a.status == http.StatusConflict:
		return procurement.Refuse(procurement.Conflict, words)
	case a.status == http.StatusTooManyRequests:
		e := procurement.Refuse(procurement.RateLimited, words)
		if s, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && s > 0 {
			e.RetryAfter = min(time.Duration(s)*time.Second, time.Hour)
		}
		return e
	case a.status == http.StatusBadRequest, a.status == http.StatusUnprocessableEntity:
		return procurement.Refuse(procurement.Invalid, words)
	case a.status == http.StatusPaymentRequired:
		return procurement.Refuse(procurement.InsufficientFunds, words)
	}
	return r.doubt(how, words)
}

// plain is a foreign text on one line.
func plain(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return ' '
		}
		return c
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
