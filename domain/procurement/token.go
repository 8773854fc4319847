package procurement

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
)

// Token returns the sticky-session token of a session between two rotations: a
// letter and 7 characters of a-z and 2-7. Every replica computes the same one.
// It is not a secret.
func Token(sessionID string, rotation int) string {
	sum := sha256.Sum256([]byte(sessionID + "/" + strconv.Itoa(rotation)))
	return "s" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:7])
}
