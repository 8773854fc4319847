package console

import (
	"fmt"

	"github.com/skip2/go-qrcode"
)

// moduleSize is the width of a module of a QR code in pixels.
const moduleSize = 8

// drawCode draws a text as a QR code in a PNG. Error correction M restores 15 percent of it.
func drawCode(text string) ([]byte, error) {
	code, err := qrcode.New(text, qrcode.Medium)
	if err != nil {
		return nil, fmt.Errorf("draw a QR code: %w", err)
	}
	return code.PNG(-moduleSize)
}
