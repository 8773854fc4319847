package endpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/domain"
)

// ReadTimeout is the time in which a request has to arrive, unless its operation allows less.
const ReadTimeout = 30 * time.Second

var emptyObject = []byte("{}")

// readBody reads the body of a request and checks it, unless the handler binds it by
// itself. A missing body that is optional is read as an empty object. Of an operation without a body it
// is checked too: a field is a setting that would be lost.
func (a *API) readBody(c *Call) error {
	r := c.gin.Request
	limit := c.op.bodyLimit()
	if err := checkLength(r.ContentLength, limit); err != nil {
		return err
	}
	if c.op.Open {
		// The deadline that follows is the server's own: it holds while the handler runs.
		until := http.NewResponseController(c.gin.Writer)
		_ = until.SetReadDeadline(time.Now().Add(openBodyTime))
		defer func() { _ = until.SetReadDeadline(time.Now().Add(ReadTimeout)) }()
	}
	body, err := readAll(r.Body, int(max(r.ContentLength, 0)), limit)
	if err != nil {
		// Before a connection is used again net/http waits for the rest of the body, and answers
		// after that.
		c.gin.Header("Connection", "close")
		return err
	}
	if (c.op.EmptyBody || !c.op.hasBody) && len(bytes.TrimSpace(body)) == 0 {
		c.Body = emptyObject
		return nil
	}
	c.Body = body
	if c.op.OwnBody != nil {
		return nil
	}
	if !c.op.hasBody && c.op.Published && !json.Valid(body) {
		return nil // a client of another service may send anything
	}
	return CheckBody(body, c.op.names.Fields)
}

// checkLength refuses a body that announces more bytes than a limit.
func checkLength(length int64, limit int) error {
	if length > int64(limit) {
		return errTooLarge.Msgf("the body is larger than %d bytes; send less at a time", limit)
	}
	return nil
}

// ReadWhole reads the body of a route that the document does not have: of at most 1 MiB, and unchecked.
func (c *Call) ReadWhole() error {
	r := c.gin.Request
	if err := checkLength(r.ContentLength, bodyLimit); err != nil {
		return err
	}
	var err error
	c.Body, err = readAll(r.Body, int(max(r.ContentLength, 0)), bodyLimit)
	if err == nil {
		c.conn.Work()
	}
	return err
}

// CheckBody refuses a body that is not one JSON object, before anything is bound
// from it.
func CheckBody(body []byte, fields *strictjson.Names) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return domain.ErrInvalid.Msgf("the body is empty; send a JSON object")
	}
	if err := strictjson.Check(body, fields); err != nil {
		return InvalidBody(err)
	}
	if bytes.TrimSpace(body)[0] != '{' {
		return domain.ErrInvalid.Msgf("the body must be a JSON object")
	}
	return nil
}

// InvalidBody returns the refusal of a body that is not valid JSON, with the field
// that the fault is in, if there is one.
func InvalidBody(err error) error {
	e, ok := errors.AsType[*strictjson.Error](err)
	switch {
	case !ok:
		return err
	case e.Key:
		return domain.InvalidField(e.Field, "%s", e.Issue)
	}
	refusal := domain.ErrInvalid.Msgf("the body is not valid JSON: %v", e)
	if e.Field == "" {
		return refusal
	}
	return refusal.With("fields", []domain.FieldIssue{{Field: e.Field, Issue: "is not valid JSON: " + e.Issue}})
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

// brokenBody returns the refusal of a body that could not be read: the client's
// connection failed it.
func brokenBody(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return domain.ErrInvalid.Msgf("the body did not arrive in time; send it again")
	}
	return domain.ErrInvalid.Msgf("the body ended before its announced length; send it again")
}
