package endpoint

import (
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/openapi"
)

// PNG is a PNG. An operation that answers one has no envelope when it
// succeeds.
type PNG []byte

const qrMediaType = "image/png"

var contentPNG = []string{qrMediaType}

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
			qrMediaType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		}}
}

// Text is an answer of an operation that has no envelope when it succeeds.
type Text string

const textType = "text/plain; charset=utf-8"

// showText answers plain text.
func (a *API) showText(c *Call, status int, t Text) {
	w := c.gin.Writer
	h := w.Header()
	h["Content-Type"] = []string{textType}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	w.WriteHeader(status)
	_, _ = w.WriteString(string(t)) // an error means that the client is gone
}

// textResponse documents an answer that is plain text.
func textResponse(o *Operation, r Reply) *huma.Response {
	return &huma.Response{Description: r.Doc, Headers: responseHeaders(o, r.Status),
		Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}
}

// form returns the media type that the caller prefers of an answer that has a page to print.
func (c *Call) form() string {
	return Negotiate(c.gin.Request.Header.Get("Accept"), openapi.JSONType, csvType, openapi.HTMLType)
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
