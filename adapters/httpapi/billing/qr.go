package billing

import (
	"fmt"

	"github.com/skip2/go-qrcode"

	"agentproxy/adapters/httpapi/endpoint"
)

// moduleSize is the width of a module of a QR code in pixels: an address needs 29
// modules and a margin of 4 on each side, which makes 370 pixels.
const moduleSize = 10

// drawCode draws a text as a QR code. Error correction M restores 15 percent of
// it.
func drawCode(text string) (endpoint.PNG, error) {
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
