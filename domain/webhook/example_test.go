package webhook_test

import (
	"fmt"
	"time"

	"agentproxy/domain/webhook"
)

// A failed attempt is repeated after five seconds, then ever later.
func ExampleDelivery_After() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	e := webhook.Endpoint{AgentID: "agt_1", URL: "https://agent.example/hook", Version: 1}
	d := webhook.NewDelivery("dlv_1", webhook.Event{ID: "evt_1", AgentID: "agt_1", Type: webhook.SessionActive}, now)
	const middle = 0.5 // no jitter
	for range 3 {
		d, e = d.After(e, webhook.Outcome{URL: e.URL, StatusCode: 503}, now, middle)
		fmt.Println(d.Status, d.Tries, d.NextAttemptAt.Sub(now))
	}
	d, e = d.After(e, webhook.Outcome{URL: e.URL, StatusCode: 204}, now, middle)
	fmt.Println(d.Status, d.Attempts, e.Verified())
	// Output:
	// pending 1 5s
	// pending 2 5m0s
	// pending 3 30m0s
	// delivered 4 true
}

// The former secret signs beside the new one for a day.
func ExampleEndpoint_Signing() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	e, _ := webhook.Endpoint{URL: "https://agent.example/hook", Version: 1}.Rotate(now)
	fmt.Println(e.Signing(now.Add(23*time.Hour)), e.Signing(now.Add(24*time.Hour)))
	// Output: [2 1] [2]
}
