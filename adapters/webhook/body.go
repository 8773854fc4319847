package webhook

import (
	"encoding/json"

	"agentproxy/domain/webhook"
)

// timestampFormat is RFC 3339 with milliseconds, as in every response of the
// API.
const timestampFormat = "2006-01-02T15:04:05.000Z07:00"

type body struct {
	Type      webhook.Type      `json:"type"`
	Timestamp string            `json:"timestamp"`
	Data      map[string]string `json:"data"`
}

// Body returns the body of an event: {type, timestamp, data}, in this order and
// with the keys of data sorted, so that every attempt sends the same bytes. The
// timestamp is the time of the event.
func Body(e webhook.Event) []byte {
	b := body{Type: e.Type, Timestamp: e.At.UTC().Format(timestampFormat), Data: e.Data}
	if b.Data == nil {
		b.Data = map[string]string{}
	}
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // strings always have a JSON form
	}
	return text
}
