package endpoint

import (
	"reflect"
	"strconv"
	"strings"

	"agentproxy/adapters/httpapi/format"
	"agentproxy/adapters/httpapi/openapi"
)

// answerIn answers data, to which it points, in the form that it has, or that the caller prefers.
func (a *API) answerIn(c *Call, status int, data any) {
	switch data := data.(type) {
	case *PNG:
		a.show(c, status, *data)
		return
	case *Text:
		a.showText(c, status, *data)
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
	v := reflect.Indirect(reflect.ValueOf(data))
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

// CSVDoc documents the form of an operation that answers CSV on request.
const CSVDoc = "With Accept: text/csv the items are a table; Link has the address of those that follow."

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
