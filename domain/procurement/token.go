package procurement

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
)

// Token is what keeps the exit of a session between two rotations: a letter and
// 7 of a-z and 2-7. Every replica computes the same one; it is no secret.
func Token(sessionID string, rotation int) string {
	sum := sha256.Sum256([]byte(sessionID + "/" + strconv.Itoa(rotation)))
	return "s" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:7])
}
