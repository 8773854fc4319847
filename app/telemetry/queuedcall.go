package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentproxy/domain/health"
)

// callVersion is that of queuedCall. A program folds the calls of its own version and of older ones.
const callVersion = 1

// queuedCall is what the queue keeps of a call: its accepted events, in order. Times are
// microseconds since 1970.
type queuedCall struct {
	Version int            `json:"v"`
	Agent   string         `json:"agent"`
	At      int64          `json:"at"` // of receipt
	Events  []*queuedEvent `json:"events"`
}

type queuedEvent struct {
	Session    string       `json:"session"`
	Worker     string       `json:"worker,omitempty"`
	ID         string       `json:"id"`
	Type       string       `json:"type"`
	Status     *int         `json:"status,omitempty"`
	Latency    *int         `json:"latency,omitempty"`
	Host       string       `json:"host,omitempty"`
	Message    string       `json:"message,omitempty"`
	OccurredAt int64        `json:"occurred_at,omitempty"`
	Claim      *queuedClaim `json:"claim,omitempty"`
}

// queuedClaim is the observation of the gateway that a report matched.
type queuedClaim struct {
	Type   string `json:"type"`
	Status int    `json:"status,omitempty"`
	Host   string `json:"host"`
	At     int64  `json:"at"`
}

func (c queuedCall) encode() ([]byte, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode a call: %w", err)
	}
	return body, nil
}

// decodeCall reads what encode wrote.
func decodeCall(body []byte) (c queuedCall, err error) {
	if err := json.Unmarshal(body, &c); err != nil {
		return c, fmt.Errorf("decode a call: %w", err)
	}
	if c.Version < 1 || c.Version > callVersion {
		return c, fmt.Errorf("decode a call: version %d; this program reads 1 to %d", c.Version, callVersion)
	}
	if slices.Contains(c.Events, nil) {
		return c, errors.New("decode a call: an event is null")
	}
	return c, nil
}

func (e *queuedEvent) on() subject { return subject{e.Session, e.Worker} }

// event returns what it is for the health of an exit.
func (e *queuedEvent) event(at time.Time) health.Event {
	event := health.Event{Type: health.Type(e.Type), Host: health.CanonicalHost(e.Host), At: at}
	if e.Status != nil {
		event.StatusCode = *e.Status
	}
	if e.Latency != nil {
		event.LatencyMS, event.HasLatency = *e.Latency, true
	}
	return event
}

func (c queuedClaim) event() health.Event {
	return health.Event{Type: health.Type(c.Type), StatusCode: c.Status, Host: c.Host, At: time.UnixMicro(c.At).UTC()}
}
