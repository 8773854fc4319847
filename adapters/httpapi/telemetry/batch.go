package telemetry

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"agentproxy/adapters/httpapi/binding"
	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/telemetry"
	"agentproxy/domain"
	"agentproxy/domain/health"
)

// decodeBatch checks and binds a telemetry batch in one pass. Package binding would build
// a map of every event to check it, which takes longer than all the rest of the call. Types are checked here,
// bounds by telemetry.Telemetry.
func decodeBatch(body []byte, fields *strictjson.Names) ([]telemetry.ReportedEvent, error) {
	d := batchDecoder{Reader: strictjson.NewReader(body, fields),
		list: make([]telemetry.ReportedEvent, 0, min(bytes.Count(body, []byte("{")), telemetry.MaxBatch+1))}
	if d.Next() != '{' {
		return nil, endpoint.CheckBody(body, fields)
	}
	found := false
	for key := range d.Fields() {
		if string(key) != "events" {
			d.Skip()
			continue
		}
		found = true
		if d.Next() != '[' {
			d.refuse("events", "must be an array")
			d.Skip()
			continue
		}
		d.events()
	}
	switch err := d.End(); {
	case err != nil:
		return nil, endpoint.InvalidBody(err)
	case !found:
		return nil, domain.InvalidField("events", "is required")
	case d.issues != nil:
		return nil, domain.InvalidFields(d.issues...)
	}
	return d.list, nil
}

type batchDecoder struct {
	*strictjson.Reader
	list   []telemetry.ReportedEvent
	issues []domain.FieldIssue
	at     int    // index of the event being read
	ints   []int  // backing array of the numbers that events point to
	id     string // the last texts, which mostly repeat
	host   string
	worker string
}

func (d *batchDecoder) refuse(field, issue string) {
	if len(d.issues) < binding.MaxIssues {
		d.issues = append(d.issues, domain.FieldIssue{Field: field, Issue: issue})
	}
}

// refuseIn adds an issue of a field of the event being read.
func (d *batchDecoder) refuseIn(field, issue string) {
	d.refuse(fmt.Sprintf("events[%d].%s", d.at, field), issue)
}

// events reads up to one event more than a batch may have, which the core refuses.
func (d *batchDecoder) events() {
	for i := range d.Elements() {
		if i > telemetry.MaxBatch {
			d.Skip()
			continue
		}
		d.at, d.list = i, append(d.list, telemetry.ReportedEvent{})
		if d.Next() != '{' {
			d.refuse(fmt.Sprintf("events[%d]", i), "must be an object")
			d.Skip()
			continue
		}
		d.event(&d.list[i])
	}
}

func (d *batchDecoder) event(e *telemetry.ReportedEvent) {
	for key := range d.Fields() {
		if d.Next() == 'n' && string(key) != "session_id" && string(key) != "event_type" {
			d.Skip() // null in an optional field counts as absent
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
		case "worker":
			d.worker = d.text("worker", d.worker)
			e.Worker = d.worker
		case "occurred_at":
			t, issue := value.ParseTime(d.text("occurred_at", ""))
			if e.OccurredAt = &t; issue != "" {
				d.refuseIn("occurred_at", issue)
			}
		default:
			d.Skip()
		}
	}
}

// text reads a string. It returns last, without a copy, if the string equals it.
func (d *batchDecoder) text(field, last string) string {
	if d.Next() != '"' {
		d.refuseIn(field, "must be a string")
		d.Skip()
		return ""
	}
	if text := d.Text(); string(text) != last {
		return string(text)
	}
	return last
}

var eventTypes = health.Types()

// eventType reads the type, without a copy if it is a known one.
func (d *batchDecoder) eventType() string {
	if d.Next() != '"' {
		return d.text("event_type", "")
	}
	text := d.Text()
	for _, t := range eventTypes {
		if string(text) == string(t) {
			return string(t)
		}
	}
	return string(text)
}

// number reads a number that parse converts.
func (d *batchDecoder) number(field string, parse func([]byte) int) *int {
	if c := d.Next(); c != '-' && (c < '0' || c > '9') {
		d.refuseIn(field, "must be a number")
		d.Skip()
		return nil
	}
	if len(d.ints) == cap(d.ints) {
		d.ints = make([]int, 0, 256)
	}
	d.ints = append(d.ints, parse(d.Number()))
	return &d.ints[len(d.ints)-1]
}

// statusCode returns an integer; 403.0 is one. It returns -1, which health.Report
// refuses, for any other number.
func statusCode(text []byte) int {
	if n, plain := digits(text); plain {
		return n
	}
	n, err := domain.ParseDecimal(string(text), 0)
	if err != nil || n > health.MaxStatusCode {
		return -1
	}
	return int(n)
}

// latency returns milliseconds, rounded. It returns -1, which health.Report
// refuses, if they are out of bounds before rounding.
func latency(text []byte) int {
	if n, plain := digits(text); plain {
		return n
	}
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(x >= 0 && x <= health.MaxLatencyMS) {
		return -1
	}
	return int(math.Round(x))
}

// digits returns a number of up to seven digits, which every number in bounds is.
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
