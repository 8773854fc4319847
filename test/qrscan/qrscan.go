// Package qrscan reads QR codes in tests as a wallet's camera would.
package qrscan

import (
	"bytes"
	"fmt"
	"image/png"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
)

// Code is a QR code as a reader sees it.
type Code struct {
	Text, Correction string // Correction is L, M, Q or H
	Width, Height    int    // of the picture in pixels
}

func (c Code) String() string {
	return fmt.Sprintf("%d x %d, correction %s: %s", c.Width, c.Height, c.Correction, c.Text)
}

// Read returns the code in a PNG.
func Read(t testing.TB, picture []byte) Code {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	bitmap, err := gozxing.NewBinaryBitmapFromImage(img)
	if err != nil {
		t.Fatal(err)
	}
	result, err := qrcode.NewQRCodeReader().Decode(bitmap, nil)
	if err != nil { // this reader takes a few of a thousand perfect pictures for a tilted photograph
		result, err = qrcode.NewQRCodeReader().Decode(bitmap,
			map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_PURE_BARCODE: true})
	}
	if err != nil {
		t.Fatalf("the picture is no QR code: %v", err)
	}
	return Code{
		Text:       result.GetText(),
		Correction: fmt.Sprint(result.GetResultMetadata()[gozxing.ResultMetadataType_ERROR_CORRECTION_LEVEL]),
		Width:      img.Bounds().Dx(), Height: img.Bounds().Dy(),
	}
}
