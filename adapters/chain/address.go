package chain

import (
	"errors"

	"github.com/btcsuite/btcd/btcutil/base58"
)

// addressPrefix is the byte before the 20 bytes of every TRON address, and
// addressLength how many characters base58check makes of all of them.
const (
	addressPrefix = 0x41
	addressLength = 34
)

var errAddress = errors.New("not a TRON address")

// encodeAddress returns an address as base58check.
func encodeAddress(b [20]byte) string {
	return base58.CheckEncode(b[:], addressPrefix)
}

// decodeAddress decodes the form that encodeAddress returns. It returns
// errAddress for every other form.
func decodeAddress(s string) (b [20]byte, err error) {
	if len(s) != addressLength {
		return b, errAddress
	}
	payload, prefix, err := base58.CheckDecode(s)
	if err != nil || prefix != addressPrefix || len(payload) != len(b) {
		return b, errAddress
	}
	copy(b[:], payload)
	return b, nil
}

// ValidAddress reports whether a text is a TRON address in base58check.
func ValidAddress(s string) bool {
	_, err := decodeAddress(s)
	return err == nil
}
