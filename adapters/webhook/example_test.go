package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"agentproxy/adapters/webhook"
	"agentproxy/ports"
)

// A receiver verifies what it gets with its secret and the published library.
func ExampleSender() {
	receiver, _ := standardwebhooks.NewWebhook(secret)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println("as sent:", receiver.Verify(body, r.Header))
		fmt.Println("forged refused:", receiver.Verify([]byte(`{"type":"recharge.paid"}`), r.Header) != nil)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	sender := webhook.New(webhook.Config{Dev: true}) // development mode delivers to this host
	defer sender.Close()
	out, err := sender.Send(context.Background(), ports.Message{URL: server.URL, ID: event.ID, At: time.Now(),
		Body: sender.Body(event), Secrets: []string{secret}})
	fmt.Println(out.StatusCode, err)
	// Output:
	// as sent: <nil>
	// forged refused: true
	// 204 <nil>
}
