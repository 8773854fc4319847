package endpoint

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain"
)

// buffers are the answers being written. One that grew large is not kept.
var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 4<<10)} }}

type buffer struct{ b []byte }

const keepBuffer = 256 << 10

func (b *buffer) free() {
	if cap(b.b) <= keepBuffer {
		b.b = b.b[:0]
		buffers.Put(b)
	}
}

// Answer writes the envelope of a success.
func (a *API) Answer(c *Call, status int, data any) {
	buf := buffers.Get().(*buffer)
	defer buf.free()
	buf.b = append(buf.b, `{"success":true,"data":`...)
	buf.b = strictjson.Append(buf.b, data)
	buf.b = append(buf.b, `,"error":null,`...)
	a.send(c, status, buf)
}

// sendRefusal writes the envelope of an error.
func (a *API) sendRefusal(c *Call, status int, e *domain.Error) {
	buf := buffers.Get().(*buffer)
	defer buf.free()
	buf.b = append(buf.b, `{"success":false,"data":null,"error":`...)
	buf.b = appendError(buf.b, e)
	buf.b = append(buf.b, ',')
	a.send(c, status, buf)
}

// send finishes the envelope with its meta and writes it.
func (a *API) send(c *Call, status int, buf *buffer) {
	buf.b = append(buf.b, `"meta":{"request_id":`...)
	buf.b = strictjson.AppendString(buf.b, c.id)
	buf.b = append(buf.b, `,"timestamp":`...)
	buf.b = value.Stamp(a.Clock.Now()).AppendJSON(buf.b)
	buf.b = append(buf.b, '}', '}', '\n')
	w := c.gin.Writer
	h := w.Header()
	h["Content-Type"] = contentJSON
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	if c.conn.ShouldClose() {
		h["Connection"] = closing
	}
	c.conn.Wait() // for the client, which may read slowly
	c.headers[1] = strconv.Itoa(len(buf.b))
	h["Content-Length"] = c.headers[1:2:2]
	w.WriteHeader(status)
	_, _ = w.Write(buf.b) // an error means that the client is gone
}

// appendError writes the error object.
func appendError(b []byte, e *domain.Error) []byte {
	b = append(b, `{"code":`...)
	b = strictjson.AppendString(b, e.Code)
	b = append(b, `,"message":`...)
	b = strictjson.AppendString(b, e.Message)
	b = append(b, `,"retryable":`...)
	b = strconv.AppendBool(b, e.Retryable)
	if len(e.Details) > 0 {
		b = append(b, `,"details":{`...)
		for i, key := range slices.Sorted(maps.Keys(e.Details)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = strictjson.AppendString(b, key)
			b = append(b, ':')
			b = appendDetail(b, e.Details[key])
		}
		b = append(b, '}')
	}
	return append(b, '}')
}

// appendDetail writes one detail: amounts as numbers, faults of fields as
// {field, issue}, times as ours.
func appendDetail(b []byte, v any) []byte {
	switch v := v.(type) {
	case domain.Money:
		return value.Money(v).AppendJSON(b)
	case *domain.Money:
		return value.Limit{Of: v}.AppendJSON(b)
	case time.Time:
		return value.Stamp(v).AppendJSON(b)
	case []domain.FieldIssue:
		b = append(b, '[')
		for i, f := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"field":`...)
			b = strictjson.AppendString(b, f.Field)
			b = append(b, `,"issue":`...)
			b = strictjson.AppendString(b, f.Issue)
			b = append(b, '}')
		}
		return append(b, ']')
	}
	text, err := json.Marshal(v)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, text...)
}

// metaReply is what every answer ends with.
type metaReply struct {
	RequestID string      `json:"request_id" doc:"Names this request; also in the header X-Request-ID." pattern:"^req_[a-z0-9]+$"`
	Timestamp value.Stamp `json:"timestamp" doc:"When the answer was written, in UTC with milliseconds."`
}
