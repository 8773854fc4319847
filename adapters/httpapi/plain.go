package httpapi

import (
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// qrCode is a PNG. An operation that answers one has no envelope when it
// succeeds.
type qrCode []byte

const qrMediaType = "image/png"

var contentPNG = []string{qrMediaType}

// show answers with a QR code.
func (a *API) show(c *call, status int, p qrCode) {
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
func qrResponse(o *operation, r reply) *huma.Response {
	return &huma.Response{Description: r.Doc, Headers: responseHeaders(o, r.Status),
		Content: map[string]*huma.MediaType{
			qrMediaType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		}}
}

// text is an answer of an operation that has no envelope when it succeeds.
type text string

const textType = "text/plain; charset=utf-8"

// showText answers plain text.
func (a *API) showText(c *call, status int, t text) {
	w := c.gin.Writer
	h := w.Header()
	h["Content-Type"] = []string{textType}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	w.WriteHeader(status)
	_, _ = w.WriteString(string(t)) // an error means that the client is gone
}

// textResponse documents an answer that is plain text.
func textResponse(o *operation, r reply) *huma.Response {
	return &huma.Response{Description: r.Doc, Headers: responseHeaders(o, r.Status),
		Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}
}
