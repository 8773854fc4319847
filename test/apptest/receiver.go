package apptest

import (
	"cmp"
	"context"
	"sync"

	"agentproxy/adapters/webhook"
	hooks "agentproxy/domain/webhook"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// WebhookReceiver is a ports.Sender that records messages and answers as a test demands.
type WebhookReceiver struct {
	clock         *fake.Clock
	mu            sync.Mutex
	Answers       []hooks.Outcome // of the next calls
	StatusCode    int             // the answer after them; 0: 204
	Err           error           // returned by Send
	received      []ports.Message
	busy          map[string]int // concurrent calls by URL
	MaxConcurrent int            // the most concurrent calls at one URL
	Hold          chan struct{}  // calls of SlowWebhookURL wait until it is closed
}

// Body returns the body of an event as the production sender does.
func (r *WebhookReceiver) Body(e hooks.Event) []byte { return webhook.Body(e) }

// Send records the message and returns the next of Answers.
func (r *WebhookReceiver) Send(ctx context.Context, m ports.Message) (hooks.Outcome, error) {
	r.mu.Lock()
	if r.busy == nil {
		r.busy = map[string]int{}
	}
	r.busy[m.URL]++
	r.MaxConcurrent = max(r.MaxConcurrent, r.busy[m.URL])
	hold := r.Hold
	r.mu.Unlock()
	if hold != nil && m.URL == SlowWebhookURL {
		<-hold
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy[m.URL]--
	if r.Err != nil {
		return hooks.Outcome{}, r.Err
	}
	r.received = append(r.received, m)
	out := hooks.Outcome{StatusCode: cmp.Or(r.StatusCode, 204)}
	if len(r.Answers) > 0 {
		out, r.Answers = r.Answers[0], r.Answers[1:]
	}
	out.URL = m.URL
	return out, nil
}

// Take returns the messages since the last call.
func (r *WebhookReceiver) Take() []ports.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.received
	r.received = nil
	return got
}

// Respond appends status codes to Answers.
func (r *WebhookReceiver) Respond(codes ...int) {
	for _, code := range codes {
		r.Answers = append(r.Answers, hooks.Outcome{StatusCode: code})
	}
}

// SlowWebhookURL is a URL at which calls wait for Hold.
const SlowWebhookURL = "https://slow.example/hook"
