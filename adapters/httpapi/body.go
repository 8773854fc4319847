package httpapi

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentproxy/domain"
)

// bodyReader reads a judged body.
type bodyReader struct{ bytes.Reader }

// BodyReader gives huma the judged body.
func (h *humaContext) BodyReader() io.Reader {
	h.body.Reset(h.call.body)
	return &h.body
}

var emptyObject = []byte("{}")

// readBody reads and judges the body of a request. A body that may be left out
// reads as an empty object then.
func (s *Server) readBody(c *call) error {
	r := c.gin.Request
	limit := cmp.Or(c.op.BodyLimit, bodyLimit)
	if r.ContentLength > int64(limit) {
		return errTooLarge.Msgf("the body is larger than %d bytes; send less at a time", limit)
	}
	body, err := readAll(r.Body, int(max(r.ContentLength, 0)), limit)
	if err != nil {
		return err
	}
	if c.op.EmptyBody && len(bytes.TrimSpace(body)) == 0 {
		c.body = emptyObject
		return nil
	}
	c.body = body
	if c.op.Signed {
		return nil
	}
	return judge(body)
}

// readAll reads a body of the size announced, or of any size up to the limit.
func readAll(r io.Reader, size, limit int) ([]byte, error) {
	if size == 0 {
		size = 512
	}
	body := make([]byte, 0, size+1)
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > limit:
			return nil, errTooLarge.Msgf("the body is larger than %d bytes; send less at a time", limit)
		case err == io.EOF:
			return body, nil
		case err != nil:
			return nil, brokenBody(err)
		case len(body) == cap(body):
			body = append(body, 0)[:len(body)]
		}
	}
}

// brokenBody is the refusal of a body that could not be read: the client's
// connection failed it.
func brokenBody(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return domain.ErrInvalid.Msgf("the body did not arrive in time; send it again")
	}
	return domain.ErrInvalid.Msgf("the body ended before its announced length; send it again")
}

// judgeQuery refuses a query that is malformed or that no database would keep.
func judgeQuery(raw string) error {
	if raw == "" {
		return nil
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return domain.ErrInvalid.Msgf("the query is malformed; percent-encode its values")
	}
	for name, values := range query {
		for _, v := range values {
			if !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl) {
				if !utf8.ValidString(name) || len(name) > 64 || !plain([]byte(name)) {
					name = "query"
				}
				return domain.InvalidField(name, "must not contain control characters or invalid UTF-8")
			}
		}
	}
	return nil
}
