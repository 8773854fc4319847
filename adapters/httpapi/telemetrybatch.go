package httpapi

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"agentproxy/app"
	"agentproxy/domain"
	"agentproxy/domain/health"
)

// decodeBatch binds a judged telemetry batch in one pass. Huma would build a
// map of every event and check it against the schema, which costs more than
// everything else about a batch; the rules here are the same ones.
func decodeBatch(body []byte) ([]app.ReportedEvent, error) {
	d := batchDecoder{scanner: scanner{b: body}}
	found := false
	for key := range d.fields() {
		if string(key) != "events" {
			d.skip()
			continue
		}
		found = true
		if d.next() != '[' {
			d.refuse("events", "must be an array")
			d.skip()
			continue
		}
		d.events()
	}
	if !found {
		return nil, domain.InvalidField("events", "is required")
	}
	if d.issues != nil {
		return nil, domain.InvalidFields(d.issues...)
	}
	if len(d.list) == 0 {
		return nil, domain.InvalidField("events", "must have 1 to %d events", app.MaxBatch)
	}
	return d.list, nil
}

type batchDecoder struct {
	scanner
	list   []app.ReportedEvent
	issues []domain.FieldIssue
	at     int    // the event being read
	ints   []int  // room for the numbers that events point to
	id     string // the last texts, which mostly repeat
	host   string
}

func (d *batchDecoder) refuse(field, issue string) {
	if len(d.issues) < maxFields {
		d.issues = append(d.issues, domain.FieldIssue{Field: field, Issue: issue})
	}
}

// refuseIn names a fault of the event being read.
func (d *batchDecoder) refuseIn(field, issue string) {
	d.refuse(fmt.Sprintf("events[%d].%s", d.at, field), issue)
}

func (d *batchDecoder) events() {
	for range d.elements() {
		if d.at = len(d.list); d.at == app.MaxBatch {
			d.refuse("events", fmt.Sprintf("must have 1 to %d events", app.MaxBatch))
			d.rest()
			return
		}
		d.list = append(d.list, app.ReportedEvent{})
		if d.next() != '{' {
			d.refuse(fmt.Sprintf("events[%d]", d.at), "must be an object")
			d.skip()
			continue
		}
		d.event(&d.list[d.at])
		if d.list[d.at].SessionID == "" {
			d.refuseIn("session_id", "is required")
		}
	}
}

func (d *batchDecoder) event(e *app.ReportedEvent) {
	for key := range d.fields() {
		if d.next() == 'n' && string(key) != "session_id" && string(key) != "event_type" {
			d.skip() // null in an optional field counts as absent
			continue
		}
		switch string(key) {
		case "session_id":
			d.id = d.text("session_id", d.id)
			e.SessionID = d.id
		case "event_type":
			e.Type = d.eventType()
		case "status_code":
			e.StatusCode = d.number("status_code", statusCode)
		case "latency_ms":
			e.LatencyMS = d.number("latency_ms", latency)
		case "target_host":
			d.host = d.text("target_host", d.host)
			e.TargetHost = d.host
		case "error_message":
			e.ErrorMessage = d.text("error_message", "")
		case "occurred_at":
			t, issue := occurredAt(d.text("occurred_at", ""))
			if e.OccurredAt = &t; issue != "" {
				d.refuseIn("occurred_at", issue)
			}
		default:
			d.skip()
		}
	}
}

// text reads a string; one that repeats the last is not copied.
func (d *batchDecoder) text(field, last string) string {
	if d.next() != '"' {
		d.refuseIn(field, "must be a string")
		d.skip()
		return ""
	}
	raw, escaped := d.quoted()
	switch {
	case escaped:
		return string(unescape(raw))
	case string(raw) == last:
		return last
	}
	return string(raw)
}

var eventTypes = health.Types()

// eventType reads the type without a copy.
func (d *batchDecoder) eventType() string {
	if d.next() == '"' {
		from := d.i
		raw, _ := d.quoted()
		for _, t := range eventTypes {
			if string(raw) == string(t) {
				return string(t)
			}
		}
		d.i = from
	}
	return d.text("event_type", "")
}

// number reads a number by its rule.
func (d *batchDecoder) number(field string, read func([]byte) (int, string)) *int {
	c := d.next()
	from := d.i
	d.skip()
	if c != '-' && (c < '0' || c > '9') {
		d.refuseIn(field, "must be a number")
		return nil
	}
	n, issue := read(d.b[from:d.i])
	if issue != "" {
		d.refuseIn(field, issue)
		return nil
	}
	if len(d.ints) == cap(d.ints) {
		d.ints = make([]int, 0, 256)
	}
	d.ints = append(d.ints, n)
	return &d.ints[len(d.ints)-1]
}

const (
	statusIssue  = "must be an integer from 0 to 599"
	latencyIssue = "must be a number from 0 to 600000"
)

// statusCode reads an integer of 0 to 599; 403.0 is one.
func statusCode(text []byte) (int, string) {
	if n, plain := digits(text); plain {
		if n > health.MaxStatusCode {
			return 0, statusIssue
		}
		return n, ""
	}
	n, err := domain.ParseDecimal(string(text), 0)
	if err != nil || n < 0 || n > health.MaxStatusCode {
		return 0, statusIssue
	}
	return int(n), ""
}

// latency reads milliseconds of 0 to 600,000; fractions are rounded.
func latency(text []byte) (int, string) {
	if n, plain := digits(text); plain {
		if n > health.MaxLatencyMS {
			return 0, latencyIssue
		}
		return n, ""
	}
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(x >= 0 && x <= health.MaxLatencyMS) {
		return 0, latencyIssue
	}
	return int(math.Round(x)), ""
}

// digits reads up to seven digits, which is all that is in bounds.
func digits(text []byte) (n int, plain bool) {
	if len(text) > 7 {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// occurredAt reads a time.
func occurredAt(text string) (time.Time, string) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1970 {
		return time.Time{}, "must be a time in RFC 3339"
	}
	return t.UTC(), ""
}
