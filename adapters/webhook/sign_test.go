package webhook_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/webhook"
	domain "agentproxy/domain/webhook"
	"agentproxy/ports"
)

// post sends a message and returns what the server received.
func post(t *testing.T, m ports.Message) received {
	t.Helper()
	w := begin(t, nil, nil)
	if out, err := w.Send(context.Background(), m); err != nil || !out.OK() {
		t.Fatalf("%+v, %v", out, err)
	}
	return w.requests()[0]
}

func TestPublishedVector(t *testing.T) {
	r := post(t, ports.Message{URL: hook, ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", At: time.Unix(1614265330, 999),
		Body: []byte(`{"test": 2432232314}`), Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}})
	if got, want := r.Header.Get("Webhook-Signature"), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestRequest(t *testing.T) {
	m := message(hook)
	r := post(t, m)
	for name, want := range map[string]string{
		"Webhook-Id": "evt_1", "Webhook-Timestamp": "1772366400", "Content-Type": "application/json", "User-Agent": "agentproxy",
	} {
		if got := r.Header[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name := range r.Header {
		if !strings.HasPrefix(name, "Webhook-") && name != "Content-Type" && name != "User-Agent" && name != "Content-Length" {
			t.Errorf("a header that was not asked for: %s: %q", name, r.Header[name])
		}
	}
	if r.Method != http.MethodPost || r.Host != "hooks.example.com" || r.RequestURI != "/x?token=t" || string(r.body) != string(m.Body) {
		t.Errorf("%s %s %s\n%s", r.Method, r.Host, r.RequestURI, r.body)
	}
	if verified(t, r.Header, r.body, secret) != 1 {
		t.Error("the signature is wrong")
	}
}

func TestOneChangedByteFails(t *testing.T) {
	r := post(t, message(hook))
	for i := range r.body {
		forged := append([]byte(nil), r.body...)
		forged[i] ^= 1
		if verified(t, r.Header, forged, secret) != 0 {
			t.Fatalf("byte %d is not signed", i)
		}
	}
	for _, name := range []string{"Webhook-Id", "Webhook-Timestamp"} {
		h := r.Header.Clone()
		h.Set(name, h.Get(name)+"0")
		if verified(t, h, r.body, secret) != 0 {
			t.Errorf("%s is not signed", name)
		}
	}
	if verified(t, r.Header, r.body, secretOf(2)) != 0 {
		t.Error("another secret verifies")
	}
}

func TestTwoSecretsSign(t *testing.T) {
	m := message(hook)
	m.Secrets = []string{secretOf(2), secretOf(1)}
	r := post(t, m)
	if n := strings.Count(r.Header.Get("Webhook-Signature"), "v1,"); n != 2 || strings.Count(r.Header.Get("Webhook-Signature"), " ") != 1 {
		t.Errorf("%q, want two signatures", r.Header.Get("Webhook-Signature"))
	}
	for _, s := range m.Secrets {
		if verified(t, r.Header, r.body, s) != 1 {
			t.Error("a receiver with one of the secrets cannot verify")
		}
	}
}

func TestFaultyMessagesAreOursAndAreNotSent(t *testing.T) {
	w := begin(t, nil, nil)
	for claim, edit := range map[string]func(*ports.Message){
		"no secret":           func(m *ports.Message) { m.Secrets = nil },
		"an empty secret":     func(m *ports.Message) { m.Secrets = []string{secret, ""} },
		"no prefix":           func(m *ports.Message) { m.Secrets = []string{strings.TrimPrefix(secret, "whsec_")} },
		"23 bytes":            func(m *ports.Message) { m.Secrets = []string{"whsec_" + strings.Repeat("YWJj", 7) + "YWI="} },
		"65 bytes":            func(m *ports.Message) { m.Secrets = []string{"whsec_" + strings.Repeat("YWJj", 21) + "YWI="} },
		"no base64":           func(m *ports.Message) { m.Secrets = []string{"whsec_" + strings.Repeat("!", 44)} },
		"no id":               func(m *ports.Message) { m.ID = "" },
		"an id with a stop":   func(m *ports.Message) { m.ID = "evt_1.2" },
		"an id with a header": func(m *ports.Message) { m.ID = "evt_1\r\nX-Other: 1" },
	} {
		m := message(hook)
		edit(&m)
		_, err := w.Send(context.Background(), m)
		if err == nil {
			t.Errorf("%s was sent", claim)
			continue
		}
		for _, s := range m.Secrets {
			if len(s) > 8 && strings.Contains(err.Error(), s[6:]) {
				t.Errorf("%s: the error reveals the secret: %v", claim, err)
			}
		}
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

func TestBody(t *testing.T) {
	const want = `{"type":"session.active","timestamp":"2026-03-01T12:00:00.987Z","data":{"session_id":"sess_1","status":"active"}}`
	elsewhere := event
	elsewhere.At = now.In(time.FixedZone("", 3600))
	for range 50 {
		for _, e := range []domain.Event{event, elsewhere} {
			if got := string(webhook.New(webhook.Config{}).Body(e)); got != want {
				t.Fatalf("%s\nwant %s", got, want)
			}
		}
	}
	if got, want := string(webhook.Body(domain.Event{Type: domain.Test, At: now})),
		`{"type":"webhook.test","timestamp":"2026-03-01T12:00:00.987Z","data":{}}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
