package webhooks_test

import (
	"slices"
	"testing"
	"time"

	"agentproxy/test/apptest"
)

// An agent that verifies with the secret it was given before the root secret was replaced can go on.
func TestThePreviousRootSignsToo(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterWithWebhook()
	given := w.Secrets.WebhookSecret(agent, 1)
	w.ReplaceRoot(apptest.OtherRootSecret, apptest.RootSecret)
	_, err := w.Webhooks.Test(t.Context(), agent)
	apptest.OK(t, err)
	w.Clock.Advance(time.Second)
	apptest.OK(t, runDeliveries(w))
	signed := w.Receiver.Take()[0].Secrets
	if len(signed) != 2 || signed[0] != w.Secrets.WebhookSecret(agent, 1) || !slices.Contains(signed, given) {
		t.Errorf("%d secrets sign", len(signed))
	}
}
