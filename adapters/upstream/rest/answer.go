package rest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain/procurement"
)

// answer is a complete response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send makes a request and reads its answer. It fails if no complete answer comes.
func (c *Client) send(ctx context.Context, how Repeat, method, path string, header http.Header,
	body []byte) (a answer, failed *procurement.Error) {
	var in io.Reader
	if body != nil {
		in = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, in)
	if err != nil {
		return a, procurement.Refuse(procurement.Invalid, "the request cannot be made")
	}
	for _, h := range []http.Header{c.Header, header} {
		for k, v := range h {
			req.Header[k] = v
		}
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if how == Once {
		// With an Idempotency-Key the transport would repeat a request whose body it
		// can read again. A refusal of the second one proves nothing about the first.
		req.GetBody = nil
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return a, unanswered(how, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return a, unanswered(how, err)
	}
	if len(text) > maxAnswer {
		return a, inconclusive(how, "the answer is too long")
	}
	return answer{res.StatusCode, res.Header, text}, nil
}

// unanswered classifies a request that got no answer. The text of a *url.Error is
// never shown, because it repeats the URL.
func unanswered(how Repeat, err error) *procurement.Error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return procurement.Refuse(procurement.Temporary, "no connection: "+OneLine(op.Err.Error()))
	}
	_, dns := errors.AsType[*net.DNSError](err)
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	if dns || cert || authority || record {
		return procurement.Refuse(procurement.Temporary, "no connection: "+OneLine(err.Error()))
	}
	if how == Once {
		return procurement.Refuse(procurement.Ambiguous, "no answer came")
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return procurement.Refuse(procurement.TimedOut, "no answer came in time")
	}
	return procurement.Refuse(procurement.Temporary, "the connection broke")
}

// inconclusive returns the error for an answer that does not show whether the call
// was executed.
func inconclusive(how Repeat, reason string) *procurement.Error {
	if how == Once {
		return procurement.Refuse(procurement.Ambiguous, reason)
	}
	return procurement.Refuse(procurement.Temporary, reason)
}

// classify decodes a successful answer into out and maps any other to an error:
// by Explain if that returns one, else by the status.
func (c *Client) classify(how Repeat, a answer, out any) *procurement.Error {
	body := c.Redact(a.body)
	if c.Explain != nil {
		if e := c.Explain(a.status, a.header, body); e != nil {
			if how == Once && e.Class == procurement.TimedOut {
				e.Class = procurement.Ambiguous
			}
			return e
		}
	}
	reason := "status " + strconv.Itoa(a.status) + ": " + OneLine(string(body[:min(len(body), 1024)]))
	switch {
	case a.status >= 200 && a.status < 300:
		if out == nil {
			return nil
		}
		if err := json.Unmarshal(a.body, out); err != nil {
			return inconclusive(how, "the answer is not of a shape that is known")
		}
		return nil
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		return procurement.Refuse(procurement.Auth, reason)
	case a.status == http.StatusNotFound, a.status == http.StatusGone:
		return procurement.Refuse(procurement.NotFound, reason)
	case a.status == http.StatusConflict:
		return procurement.Refuse(procurement.Conflict, reason)
	case a.status == http.StatusTooManyRequests:
		e := procurement.Refuse(procurement.RateLimited, reason)
		if s, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && s > 0 {
			e.RetryAfter = min(time.Duration(s)*time.Second, time.Hour)
		}
		return e
	case a.status == http.StatusBadRequest, a.status == http.StatusUnprocessableEntity:
		return procurement.Refuse(procurement.Invalid, reason)
	case a.status == http.StatusPaymentRequired:
		return procurement.Refuse(procurement.InsufficientFunds, reason)
	}
	return inconclusive(how, reason)
}

// OneLine returns a foreign text with everything but visible ASCII replaced by
// single spaces.
func OneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return ' '
		}
		return c
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// RequestID returns the header that names the intent of a call, for the logs of
// both sides. No seller documents that it reads it.
func RequestID(key string) http.Header { return http.Header{"X-Request-Id": {key}} }
