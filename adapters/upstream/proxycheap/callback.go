package proxycheap

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

// maxCallback is the longest accepted event in bytes, above every documented one.
const maxCallback = 64 << 10

// Callback verifies Webhook-Signature: "sha256=" and the hex of an HMAC-SHA-256,
// keyed with the secret, of "sha256", the event, its id, the body and the secret
// (https://docs.proxy-cheap.com, unverified on the live system).
//
// It returns no refs, because an event names an address and not its order: every order
// that is open or pending should be read. The signature covers no time, so a replayed
// call causes another read and nothing else. It does not cover the boundaries between
// event, id and body either, so no content of a call is used. The seller does not
// resend events; polling covers lost ones.
func (p *Provider) Callback(headers map[string][]string, body []byte, _ time.Time) ([]string, error) {
	secret := p.config.CallbackSecret
	if secret == "" {
		return nil, domain.ErrInvalid.Msgf("callbacks of %s are not configured", p.config.Name)
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
		return nil, domain.ErrInvalid.Msgf("the callback is not JSON")
	}
	return nil, nil
}
