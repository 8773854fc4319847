// Package eventlog holds the event feed of a session: the last things that happened
// to it, seen by the gateway, told by the agent or done by the service.
package eventlog

import "time"

// IDPrefix begins the id of every event.
const IDPrefix = "evt_"

// Source says who saw an event.
type Source uint8

// The sources, in the words of the public API: gateway, agent, service.
const (
	Gateway Source = iota
	Agent
	Service
)

// String is the source in the words of the public API.
func (s Source) String() string { return [...]string{"gateway", "agent", "service"}[s] }

// Keep is how long events are kept.
const Retention = 7 * 24 * time.Hour

// Event is one entry of the feed.
type Event struct {
	ID         string
	At         time.Time // of receipt
	OccurredAt time.Time // as the agent says; zero: not said
	Source     Source
	Type       string
	TargetHost string
	StatusCode int // 0: none
	Code       string
	Bytes      int64
	LatencyMS  int // -1: not known
	ExitIP     string
	Message    string // the agent's error_message
	Retryable  bool
	HowToFix   string
}
