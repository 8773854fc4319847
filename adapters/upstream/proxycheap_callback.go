package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"agentproxy/domain"
)

// maxCallback is more than any event that is documented.
const maxCallback = 64 << 10

// Callback verifies Webhook-Signature: "sha256=" and the hex of an HMAC-SHA-256,
// keyed with the secret, of "sha256", the event, its id, the body and the secret
// (https://docs.proxy-cheap.com, unverified on the live system).
//
// An event names an address, never its order, so no ref is returned: everything
// that is on its way should be read. No time is signed; a call that is played
// again has things read again, nothing more. The border between event, id and
// body is not signed either, which is why only the signature is trusted, and
// nothing that is said. Events are not sent again: one that is lost is replaced by
// reading.
func (p *proxyCheap) Callback(headers map[string][]string, body []byte, _ time.Time) ([]string, error) {
	secret := p.spec.Secrets["callback_secret"]
	if secret == "" {
		return nil, domain.ErrInvalid.Msgf("callbacks of %s are not configured", p.spec.Name)
	}
	if len(body) > maxCallback {
		return nil, domain.ErrInvalid.Msgf("the callback is longer than %d bytes", maxCallback)
	}
	header := http.Header(headers)
	sent, ok := strings.CutPrefix(header.Get("Webhook-Signature"), "sha256=")
	given, err := hex.DecodeString(sent)
	event, id := header.Get("Webhook-Event"), header.Get("Webhook-Id")
	if !ok || err != nil || event == "" || id == "" {
		return nil, domain.ErrInvalid.Msgf("the callback is not signed")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	for _, part := range [][]byte{[]byte("sha256"), []byte(event), []byte(id), body, []byte(secret)} {
		mac.Write(part)
	}
	if !hmac.Equal(given, mac.Sum(nil)) {
		return nil, domain.ErrInvalid.Msgf("the signature of the callback is wrong")
	}
	if !json.Valid(body) {
		return nil, domain.ErrInvalid.Msgf("the callback is no JSON")
	}
	return nil, nil
}
