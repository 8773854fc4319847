package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentproxy/ports"
)

// secretPrefix begins every secret; what follows is base64 of its bytes, of
// which by the specification are 24 to 64.
const (
	secretPrefix         = "whsec_"
	minSecret, maxSecret = 24, 64
)

// Faults of a message; none repeats a secret.
var (
	errID     = errors.New("the id is empty or has more than letters, digits, - and _")
	errSecret = errors.New("a secret is not whsec_ and the base64 of 24 to 64 bytes")
	errNoKey  = errors.New("there is no secret")
)

// signedHeader returns the header of a message, signed with each of its
// secrets.
func signedHeader(m ports.Message) (http.Header, error) {
	if !validID(m.ID) {
		return nil, errID
	}
	if len(m.Secrets) == 0 {
		return nil, errNoKey
	}
	signatures := make([]string, len(m.Secrets))
	for i, secret := range m.Secrets {
		key, err := decode(secret)
		if err != nil {
			return nil, err
		}
		signatures[i] = sign(key, m.ID, m.At, m.Body)
	}
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", userAgent)
	h.Set("webhook-id", m.ID)
	h.Set("webhook-timestamp", strconv.FormatInt(m.At.Unix(), 10))
	h.Set("webhook-signature", strings.Join(signatures, " "))
	return h, nil
}

// sign returns "v1," and the base64 of the HMAC-SHA-256 of "id.seconds.body"
// (Standard Webhooks, signature scheme). An id must not contain a full stop,
// which would move the borders between the three.
func sign(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func decode(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return nil, errSecret
	}
	return key, nil
}

func validID(id string) bool {
	for i := range len(id) {
		c := id[i]
		if !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '-' || c == '_') {
			return false
		}
	}
	return id != ""
}
