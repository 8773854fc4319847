package ports

import (
	"context"
	"log/slog"
	"time"

	"agentproxy/domain/webhook"
)

// Message is one attempt to deliver an event to an agent. It hides all but its
// id when logged.
type Message struct {
	URL     string
	ID      string    // the event's, the same at every attempt: receivers recognize repetitions by it
	At      time.Time // of this attempt
	Body    []byte    // from Sender.Body
	Secrets []string  // whsec_…, each signs
	// Stranger is set for an endpoint whose owner may not have asked for it (webhook.Endpoint.Stranger).
	Stranger bool
}

// LogValue hides the secrets, and a URL that may hold one.
func (m Message) LogValue() slog.Value { return slog.GroupValue(slog.String("id", m.ID)) }

// Sender sends webhooks.
type Sender interface {
	// Body returns the body of an event's request, the same bytes for each call.
	Body(e webhook.Event) []byte
	// Send signs a message and posts it once. It reaches only addresses that the
	// operator lets agents reach, checked when it connects, follows no redirect,
	// and takes at most 10 s. Every answer, and every failure that is the
	// receiver's or its network's, is an outcome. An error is ours or the
	// context's: it is not evidence about the endpoint, and the attempt does not
	// count. A RequeueAfter is one: an address of a Stranger has had its requests
	// (webhook.Tries) of all agents together.
	Send(ctx context.Context, m Message) (webhook.Outcome, error)
}
