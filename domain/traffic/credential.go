package traffic

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"hash"
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

// Password derives the first proxy password of a session: 160 bits of HMAC-SHA-256
// (RFC 2104) of its id. So a wrong one is refused without asking the database, and
// none is stored.
func Password(key []byte, sessionID string) string { return NumberedPassword(key, sessionID, 0) }

// passwordLength is the length of a password without its number.
const passwordLength = 32

// NumberedPassword derives the password of a session after it was replaced that often. The number is
// its end, so that it is known which of them a client has; 0 is left out.
func NumberedPassword(key []byte, sessionID string, number int) string {
	return PasswordBy(hmac.New(sha256.New, key), sessionID, number)
}

// PasswordBy is NumberedPassword with the HMAC-SHA-256 of the key, new or reset.
func PasswordBy(mac hash.Hash, sessionID string, number int) string {
	mac.Write([]byte(sessionID))
	digits := ""
	if number > 0 {
		digits = strconv.Itoa(number)
		mac.Write([]byte("/" + digits))
	}
	return passwordText.EncodeToString(mac.Sum(nil)[:20]) + digits
}

// PasswordNumber returns the number that a password ends in, and false for one that was never issued.
func PasswordNumber(password string) (int, bool) {
	if len(password) < passwordLength || len(password) > passwordLength+maxNumber {
		return 0, false
	}
	digits := password[passwordLength:]
	if digits == "" {
		return 0, true
	}
	number, err := strconv.ParseUint(digits, 10, 31)
	return int(number), err == nil && digits[0] != '0'
}

// CheckPassword compares a password of any number in constant time. Whether it is still the
// session's depends on its number alone.
func CheckPassword(key []byte, sessionID, password string) bool {
	number, ok := PasswordNumber(password)
	return ok && subtle.ConstantTimeCompare([]byte(NumberedPassword(key, sessionID, number)), []byte(password)) == 1
}
