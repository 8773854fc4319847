package signin

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// Parameters of a new hash, as OWASP recommends them.
const (
	hashMemory  = 19 << 10 // KiB
	hashPasses  = 2
	hashThreads = 1
	saltLength  = 16
	hashLength  = 32
)

// Bounds of the parameters of a hash. The least are those that OWASP takes for enough; the most keep a check within
// 256 MiB and about a second.
const (
	minMemory, maxMemory   = 7 << 10, 256 << 10 // KiB
	maxPasses              = 10
	maxThreads             = 16
	minSalt, maxSalt       = 8, 64 // bytes
	minHash, maxHash       = 16, 64
	minWork, maxWork       = 28 << 10, 1 << 20 // memory times passes
	minPassword            = 12                // characters
	phcLength              = 300
	errHashIs, errPassword = "is not an argon2id hash in the PHC format, as `agentproxy admin hash` prints it",
		"must have 12 to 1,024 characters, without control characters and without white space at the ends"
)

// passwordHash is an argon2id hash in the PHC string format.
type passwordHash struct {
	text           string
	memory, passes uint32
	threads        uint8
	salt, sum      []byte
}

var phc = regexp.MustCompile(
	`^\$argon2id\$v=19\$m=(\d{1,9}),t=(\d{1,9}),p=(\d{1,3})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$`)

// parseHash parses a hash. Its error does not repeat the text.
func parseHash(text string) (h passwordHash, err error) {
	m := phc.FindStringSubmatch(text)
	if m == nil || len(text) > phcLength {
		return h, errors.New(errHashIs)
	}
	number := func(text string) uint32 {
		n, _ := strconv.ParseUint(text, 10, 32) // nine digits at most
		return uint32(n)
	}
	h = passwordHash{text: text, memory: number(m[1]), passes: number(m[2])}
	threads := number(m[3])
	var errSalt, errSum error
	h.salt, errSalt = base64.RawStdEncoding.Strict().DecodeString(m[4])
	h.sum, errSum = base64.RawStdEncoding.Strict().DecodeString(m[5])
	work := uint64(h.memory) * uint64(h.passes)
	switch {
	case errSalt != nil || errSum != nil:
		return h, errors.New(errHashIs)
	case h.memory < minMemory || h.memory > maxMemory || h.passes < 1 || h.passes > maxPasses || threads < 1 ||
		threads > maxThreads || work < minWork || work > maxWork:
		return h, fmt.Errorf("has parameters out of bounds: m must be %d to %d, t 1 to %d, p 1 to %d, and m times t %d to %d",
			minMemory, maxMemory, maxPasses, maxThreads, minWork, maxWork)
	case len(h.salt) < minSalt || len(h.salt) > maxSalt || len(h.sum) < minHash || len(h.sum) > maxHash:
		return h, fmt.Errorf("must have a salt of %d to %d bytes and a hash of %d to %d", minSalt, maxSalt, minHash, maxHash)
	}
	h.threads = uint8(threads)
	return h, nil
}

// matches reports whether a password has the hash.
func (h passwordHash) matches(password string) bool {
	sum := argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.threads, uint32(len(h.sum)))
	return subtle.ConstantTimeCompare(sum, h.sum) == 1
}

// unknownHash takes the place of the hash of a user that does not exist.
var unknownHash = passwordHash{memory: hashMemory, passes: hashPasses, threads: hashThreads,
	salt: make([]byte, saltLength), sum: make([]byte, hashLength)}

// Line returns the line of the file of users for a user with a password.
func Line(name string, role Role, password string) (string, error) {
	if err := checkUser(name, role); err != nil {
		return "", err
	}
	if err := CheckPassword(password); err != nil {
		return "", err
	}
	salt := make([]byte, saltLength)
	rand.Read(salt)
	sum := argon2.IDKey([]byte(password), salt, hashPasses, hashMemory, hashThreads, hashLength)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("%s:%s:$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", name, role, argon2.Version, hashMemory, hashPasses,
		hashThreads, encode(salt), encode(sum)), nil
}

// CheckPassword refuses a password that is too short, or that a form or a header cannot carry. Its error does not
// repeat it.
func CheckPassword(password string) error {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	if utf8.RuneCountInString(password) < minPassword || len(password) > maxPassword || !utf8.ValidString(password) ||
		strings.TrimSpace(password) != password || strings.ContainsFunc(password, control) {
		return errors.New(errPassword)
	}
	return nil
}
