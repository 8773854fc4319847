// Package webhook signs webhooks by the Standard Webhooks specification
// (standardwebhooks.com) and posts them. Agents choose the URLs, so every
// connection is made to an address that the egress policy allowed.
package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"

	"agentproxy/domain/egress"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

const (
	// maxResponse is how many bytes are read of an answer's body, and of its head.
	maxResponse = 64 << 10
	// maxAddresses is how many answers of a lookup are dialled; all are checked.
	maxAddresses = 4
	userAgent    = "agentproxy"
)

// Config configures a Sender. The zero value reaches public addresses over
// https.
type Config struct {
	// Policy checks every address: Allow has the operator's networks and Refuse
	// the listeners of this service. Loopback is set from Dev.
	Policy egress.Policy
	// Dev is development mode: http and loopback are allowed.
	Dev     bool
	Timeout time.Duration // of an attempt in all; default 10 s
	// Roots are the authorities of TLS certificates; nil: the system's.
	Roots *x509.CertPool
	// Resolve looks a name up; default: the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address that was checked; default: by TCP.
	Dial func(ctx context.Context, target netip.AddrPort) (net.Conn, error)
}

func (c Config) withDefaults() Config {
	c.Policy.Loopback = c.Dev
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	if c.Resolve == nil {
		c.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if c.Dial == nil {
		c.Dial = dialTCP
	}
	return c
}

// Sender posts webhooks. It is safe for concurrent use.
type Sender struct {
	cfg       Config
	transport *http.Transport

	mu    sync.Mutex
	tries webhook.Tries // at addresses of strangers
}

var _ ports.Sender = (*Sender)(nil)

// New returns a Sender. The caller must Close it.
func New(cfg Config) *Sender {
	s := &Sender{cfg: cfg.withDefaults()}
	s.transport = newTransport(s, s.dial)
	return s
}

// Close closes idle connections.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

// Body returns the body of an event.
func (s *Sender) Body(e webhook.Event) []byte { return Body(e) }

// Send posts a message once.
func (s *Sender) Send(ctx context.Context, m ports.Message) (webhook.Outcome, error) {
	header, err := signedHeader(m)
	if err != nil {
		return webhook.Outcome{}, fmt.Errorf("sign webhook %s: %w", m.ID, err)
	}
	out := webhook.Outcome{URL: m.URL}
	target, err := parseURL(m.URL, s.cfg.Dev)
	if err != nil {
		out.Err = err.Error()
		return out, nil
	}
	within, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	transport, reached := s.transport, (*visit)(nil)
	if m.Stranger {
		reached = &visit{s: s, at: m.At}
		transport = newTransport(s, reached.dial)
		transport.DisableKeepAlives = true // each request dials, and is counted by its address
	}
	answer, err := transport.RoundTrip(request(within, target, header, m.Body))
	wait, full := errors.AsType[crowded](err)
	switch {
	case full:
		return webhook.Outcome{}, ports.RequeueAfter(wait)
	case err != nil && ctx.Err() != nil:
		return webhook.Outcome{}, fmt.Errorf("send webhook %s: %w", m.ID, context.Cause(ctx))
	case err != nil && isLocal(err):
		return webhook.Outcome{}, fmt.Errorf("send webhook %s: %w", m.ID, err)
	case err != nil:
		out.Err = explain(err, s.cfg.Timeout)
		return out, nil
	}
	defer func() { _ = answer.Body.Close() }()
	if reached != nil && answer.StatusCode >= 200 && answer.StatusCode <= 299 {
		reached.answered()
	}
	out.StatusCode, out.RetryAfter = answer.StatusCode, parseRetryAfter(answer.Header.Get("Retry-After"), m.At)
	if answer.StatusCode >= http.StatusOK { // the body of a 101 has no end, and no timeout
		// The status is the answer. The rest is read so that the connection can
		// be kept; what goes wrong here takes nothing back.
		_, _ = io.CopyN(io.Discard, answer.Body, maxResponse)
	}
	return out, nil
}

// request builds the request for the transport. An http.Client would follow
// redirects, keep cookies and put the URL, which may hold a secret of the
// agent, into its errors.
func request(ctx context.Context, target *url.URL, header http.Header, body []byte) *http.Request {
	again := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	first, _ := again()
	r := &http.Request{Method: http.MethodPost, URL: target, Host: target.Host, Header: header,
		Body: first, GetBody: again, ContentLength: int64(len(body))}
	return r.WithContext(ctx)
}

// maxRetryAfter is the upper bound of Retry-After.
const maxRetryAfter = 7 * 24 * time.Hour

// parseRetryAfter parses seconds or a date (RFC 9110, section 10.2.3). It
// returns 0 for neither, and for the past.
func parseRetryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}
