package proxycheap

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// Mode is a behaviour of the webhook.
type Mode string

// The seller does not resend events, so Never looks like a lost event.
const (
	Once       Mode = ""
	Duplicate  Mode = "duplicate"    // each event twice, with the same id
	OutOfOrder Mode = "out_of_order" // the newest first
	Unsigned   Mode = "unsigned"
	Forged     Mode = "forged" // signed with another secret
	Never      Mode = "never"
)

// Call is a callback.
type Call struct {
	Header http.Header
	Body   []byte
}

// event is a recorded change of an address's status.
type event struct {
	id   string
	body []byte
}

// hook collects the events. The lock of the Seller guards it.
type hook struct {
	mode    Mode
	made    int
	waiting []event
}

func (h *hook) changed(proxy int64, old, status string) {
	h.made++
	body, _ := json.Marshal(map[string]any{"proxyId": proxy, "oldStatus": old, "status": status})
	h.waiting = append(h.waiting, event{fmt.Sprintf("01985631-312c-7072-90e1-%012x", h.made), body})
}

// SetWebhook sets the mode of the webhook.
func (s *Seller) SetWebhook(m Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook.mode = m
}

// Callbacks returns the calls for the events since its last call, as the mode orders and
// signs them.
func (s *Seller) Callbacks() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	mode, events := s.hook.mode, s.hook.waiting
	s.hook.waiting = nil
	if mode == Never {
		return nil
	}
	if mode == OutOfOrder {
		slices.Reverse(events)
	}
	var calls []Call
	for _, e := range events {
		secret := CallbackSecret
		if mode == Forged {
			secret = "another secret"
		}
		c := Sign("proxy.status.changed", e.id, e.body, secret)
		if mode == Unsigned {
			c.Header.Del("Webhook-Signature")
		}
		if calls = append(calls, c); mode == Duplicate {
			calls = append(calls, c)
		}
	}
	return calls
}

// Post sends the callbacks to a URL and returns the statuses of the answers.
func (s *Seller) Post(ctx context.Context, url string) (statuses []int, err error) {
	for _, c := range s.Callbacks() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(c.Body))
		if err != nil {
			return statuses, err
		}
		req.Header = c.Header
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return statuses, err
		}
		res.Body.Close()
		statuses = append(statuses, res.StatusCode)
	}
	return statuses, nil
}

// Sign returns a callback with the seller's signature: HMAC-SHA-256 keyed with the secret
// of "sha256", the event, its id, the body and the secret.
func Sign(event, id string, body []byte, secret string) Call {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("sha256" + event + id + string(body) + secret))
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Webhook-Event", event)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	return Call{h, body}
}
