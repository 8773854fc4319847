package chain

import (
	"crypto/sha256"

	"github.com/btcsuite/btcd/btcutil/base58"
)

// testFingerprint is of the 78 bytes of testAccount, made by another tool.
const testFingerprint = "66f6a5816a278b35"

// checked is the address with the bytes of vector 0 and another prefix.
func checked(prefix byte) string {
	b, err := decodeAddress(vectors[0].address)
	if err != nil {
		panic(err)
	}
	return base58.CheckEncode(b[:], prefix)
}

// checksummed is base58 of the bytes and their checksum.
func checksummed(b []byte) string {
	once := sha256.Sum256(b)
	twice := sha256.Sum256(once[:])
	return base58.Encode(append(b[:len(b):len(b)], twice[:4]...))
}
