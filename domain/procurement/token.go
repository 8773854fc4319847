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

// WorkerToken returns the same for a worker of a session between two of its exits.
func WorkerToken(sessionID string, worker int64, turn int) string {
	return Token(sessionID+"/w"+strconv.FormatInt(worker, 10), turn)
}

// FreshToken returns the token of the n-th connection of which each gets another exit.
func FreshToken(sessionID string, n uint64) string {
	return Token(sessionID+"/n"+strconv.FormatUint(n, 10), 0)
}
