package traffic

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"strconv"
	"strings"

	"agentproxy/domain/session"
)

// User is a proxy user name taken apart: the session, and either the rotation
// number it was issued with (dynamic) or the index of an IP (static).
type User struct {
	SessionID string
	Static    bool
	Number    int
}

const (
	rotationMark = 'r'
	ipMark       = 'i'
	maxNumber    = 9 // digits
)

// String writes the user name: the session id without its prefix, a mark, and
// the number. Letters and digits only, so that it needs no escaping in a URL.
func (u User) String() string {
	mark := byte(rotationMark)
	if u.Static {
		mark = ipMark
	}
	b := append(make([]byte, 0, session.IDLength+1+maxNumber), strings.TrimPrefix(u.SessionID, session.IDPrefix)...)
	return string(strconv.AppendInt(append(b, mark), int64(u.Number), 10))
}

// ParseUser takes a user name apart. It is false for what String cannot have
// written.
func ParseUser(name string) (User, bool) {
	if len(name) < session.IDLength+2 || len(name) > session.IDLength+1+maxNumber {
		return User{}, false
	}
	mark, digits := name[session.IDLength], name[session.IDLength+1:]
	number, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || mark != rotationMark && mark != ipMark || len(digits) > 1 && digits[0] == '0' {
		return User{}, false
	}
	return User{SessionID: session.IDPrefix + name[:session.IDLength], Static: mark == ipMark, Number: int(number)}, true
}

var passwordText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Password derives the proxy password of a session: the first 160 bits of
// HMAC-SHA-256 (RFC 2104) of its id. So a wrong one is refused without asking
// the database, and none is stored.
func Password(key []byte, sessionID string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(sessionID))
	return passwordText.EncodeToString(mac.Sum(nil)[:20])
}

// CheckPassword compares in constant time.
func CheckPassword(key []byte, sessionID, password string) bool {
	return subtle.ConstantTimeCompare([]byte(Password(key, sessionID)), []byte(password)) == 1
}
