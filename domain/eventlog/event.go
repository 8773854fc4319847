// Package eventlog holds the event log of a session: what the gateway observed,
// the agent reported and the service did.
package eventlog

import "time"

// IDPrefix begins the id of every event.
const IDPrefix = "evt_"

// Source is the origin of an event.
type Source uint8

// The sources.
const (
	Gateway Source = iota
	Agent
	Service
)

// String returns the name of the source in the public API: gateway, agent or
// service.
func (s Source) String() string { return [...]string{"gateway", "agent", "service"}[s] }

// Retention is how long events are kept.
const Retention = 7 * 24 * time.Hour

// Event is one entry of the log.
type Event struct {
	ID         string
	At         time.Time // of receipt
	OccurredAt time.Time // as reported by the agent; zero if not reported
	Source     Source
	Type       string
	TargetHost string
	StatusCode int // 0 if none
	Code       string
	Bytes      int64
	LatencyMS  int // -1 if unknown
	ExitIP     string
	Message    string // the agent's error_message
	Retryable  bool
	HowToFix   string
	Worker     string // whose event it is; empty: the session's own
	Count      int    // of equal ones that it represents; 0 is one
}
