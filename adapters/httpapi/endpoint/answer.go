package endpoint

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/format"
	"agentproxy/adapters/httpapi/openapi"
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

// PNG is a PNG. An operation that answers one has no envelope when it
// succeeds.
type PNG []byte

var contentPNG = []string{format.PNGType}

// show answers with a QR code.
func (a *API) show(c *Call, status int, p PNG) {
	w := c.gin.Writer
	h := w.Header()
	h["Content-Type"] = contentPNG
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	h["Content-Length"] = []string{strconv.Itoa(len(p))}
	w.WriteHeader(status)
	_, _ = w.Write(p) // an error means that the client is gone
}

// qrResponse documents an answer that is a QR code.
func qrResponse(o *Operation, r Reply) *huma.Response {
	return &huma.Response{Description: r.Doc, Headers: responseHeaders(o, r.Status),
		Content: map[string]*huma.MediaType{
			format.PNGType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		}}
}

// Text is an answer of an operation that has no envelope when it succeeds.
type Text string

// showText answers plain text.
func (a *API) showText(c *Call, status int, t Text) {
	w := c.gin.Writer
	h := w.Header()
	h["Content-Type"] = []string{format.TextType + "; charset=utf-8"}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	w.WriteHeader(status)
	_, _ = w.WriteString(string(t)) // an error means that the client is gone
}

// textResponse documents an answer that is plain text.
func textResponse(o *Operation, r Reply) *huma.Response {
	return &huma.Response{Description: r.Doc, Headers: responseHeaders(o, r.Status),
		Content: map[string]*huma.MediaType{format.TextType: {Schema: &huma.Schema{Type: huma.TypeString}}}}
}

// form returns the media type that the caller prefers of an answer that has a page to print.
func (c *Call) form() string {
	return format.Negotiate(c.gin.Request.Header.Get("Accept"), openapi.JSONType, format.CSVType, openapi.HTMLType)
}

// Filed reports whether a list is asked for in one piece, to print or to file: another form than JSON, and no
// page of it.
func (c *Call) Filed() bool {
	for _, name := range []string{"page", "page_size", "cursor"} {
		if _, given := c.Query(name); given {
			return false
		}
	}
	return c.form() != openapi.JSONType
}

// printed is an answer that has a page to print, too.
type printed interface {
	Print(next string) ([]byte, error)
	Pages() Pagination
}

// showPage writes the page to print of an answer.
func (a *API) showPage(c *Call, status int, p printed) {
	next := ""
	if cursor := p.Pages().NextCursor; cursor != "" {
		query := c.gin.Request.URL.Query()
		query.Del("page")
		query.Set("cursor", string(cursor))
		next = "?" + query.Encode()
	}
	page, err := p.Print(next)
	if err != nil {
		a.Refuse(c, err)
		return
	}
	w := c.gin.Writer
	h := w.Header()
	h["Content-Type"] = []string{openapi.HTMLType + "; charset=utf-8"}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_, _ = w.Write(page) // an error means that the client is gone
}

// answerCSV writes the items of an answer as CSV. If more items follow, Link has their address.
func (a *API) answerCSV(c *Call, status int, data any) {
	v := reflect.ValueOf(data)
	text := format.CSV(v.FieldByName("Items"))
	h := c.gin.Writer.Header()
	h["Content-Type"] = []string{format.CSVType + "; charset=utf-8; header=present"}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	h.Set("Content-Disposition", `attachment; filename="`+strings.TrimPrefix(c.op.ID, "list-")+`.csv"`)
	if p := reflect.Indirect(v.FieldByName("Pagination")); p.IsValid() {
		if next := p.Interface().(Pagination).NextCursor; next != "" {
			query := c.gin.Request.URL.Query()
			query.Del("page")
			query.Set("cursor", string(next))
			h.Set("Link", "<"+c.gin.Request.URL.Path+"?"+query.Encode()+`>; rel="next"`)
		}
	}
	c.conn.Wait() // for the client, which may read slowly
	c.gin.Writer.WriteHeader(status)
	_, _ = c.gin.Writer.WriteString(text) // an error means that the client is gone
}

// documentCSV adds the form that answerCSV writes to the document of an answer.
func documentCSV(r *huma.Response) {
	r.Content[format.CSVType] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
}

// CSVDoc documents the form of an operation that answers CSV on request.
const CSVDoc = "With Accept: text/csv the items are a table; Link has the address of those that follow."

// answerIn answers data in the form that it has, or that the caller prefers.
func (a *API) answerIn(c *Call, status int, data any) {
	switch data := data.(type) {
	case PNG:
		a.show(c, status, data)
		return
	case Text:
		a.showText(c, status, data)
		return
	}
	if c.op.CSV {
		c.gin.Writer.Header().Add("Vary", "Accept")
		if p, ok := data.(printed); ok && c.form() == openapi.HTMLType {
			a.showPage(c, status, p)
			return
		}
		if format.AcceptsCSV(c.gin.Request) {
			a.answerCSV(c, status, data)
			return
		}
	}
	a.Answer(c, status, data)
}
