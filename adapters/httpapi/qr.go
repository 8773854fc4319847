package httpapi

import (
	"fmt"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/skip2/go-qrcode"
)

// qrCode is a PNG. An operation that answers one has no envelope when it
// succeeds.
type qrCode []byte

const qrMediaType = "image/png"

var contentPNG = []string{qrMediaType}

// moduleSize is the width of a module of a QR code in pixels: an address needs 29
// modules and a margin of 4 on each side, which makes 370 pixels.
const moduleSize = 10

// drawCode draws a text as a QR code. Error correction M restores 15 percent of
// it.
func drawCode(text string) (qrCode, error) {
	code, err := qrcode.New(text, qrcode.Medium)
	if err != nil {
		return nil, fmt.Errorf("draw a QR code: %w", err)
	}
	p, err := code.PNG(-moduleSize)
	if err != nil {
		return nil, fmt.Errorf("draw a QR code: %w", err)
	}
	return p, nil
}

// show answers with a QR code.
func (s *Server) show(c *call, status int, p qrCode) {
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
