package webhook_test

import (
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The published library, which receivers use, takes what is sent.
func TestThePublishedLibraryVerifies(t *testing.T) {
	m := message(hook)
	m.At = time.Now()
	m.Secrets = []string{secretOf(2), secretOf(1)}
	r := post(t, m)
	for n, want := range map[byte]bool{1: true, 2: true, 3: false} {
		receiver, err := standardwebhooks.NewWebhook(secretOf(n))
		if err != nil {
			t.Fatal(err)
		}
		if err := receiver.Verify(r.body, r.Header); (err == nil) != want {
			t.Errorf("secret %d: %v", n, err)
		}
		if err := receiver.Verify(append(r.body, ' '), r.Header); err == nil {
			t.Errorf("secret %d: a changed body verifies", n)
		}
	}
}
