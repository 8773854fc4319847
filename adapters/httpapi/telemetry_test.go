package httpapi_test

import (
	"strings"
	"testing"
)

// TestBatchRules holds the batch's own decoder against the rules of one event,
// which huma checks: what one refuses the other does, for the same field.
func TestBatchRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Batch")
	id := w.do("POST", "/v1/sessions", oneGB, a.as).want(201).str("data.session_id")
	values := append(
		[]string{
			`"success"`,
			`"http_error"`,
			`403`,
			`599`,
			`599.0`,
			`5.99e2`,
			`600`,
			`599.5`,
			`-0.0`,
			`600000`,
			`600001`,
			`6e5`,
			`1e300`,
			`0.4`,
			`"2026-05-15T12:00:00Z"`,
			`"2026-05-15T14:00:00.123456789+02:00"`,
			`"2026-05-15T12:00:00"`,
			`"2027-01-01T00:00:00Z"`,
			`"shop.example"`,
			`"a\u0041\n\"\\"`,
			`false`,
			`"` + strings.Repeat("é", 253) + `"`,
			`"` + strings.Repeat("é", 254) + `"`,
			`"` + strings.Repeat("é", 1001) + `"`,
		},
		hostile...)
	for _, field := range []string{"event_type", "status_code", "latency_ms", "target_host", "error_message", "occurred_at", "unknown", "Status_Code"} {
		for _, value := range values {
			fields := `"event_type":"success","` + field + `":` + value
			if field == "event_type" {
				fields = `"event_type":` + value
			}
			one := w.do("POST", "/v1/sessions/"+id+"/report-event", `{`+fields+`}`, a.as)
			batch := w.do("POST", "/v1/telemetry/batch", `{"events":[{"session_id":"`+id+`","event_type":"success"},{"session_id":"`+id+`",`+fields+`}]}`, a.as)
			if one.status != batch.status {
				t.Errorf("%s %.60s: one event %d, a batch %d\n%.300s\n%.300s", field, value, one.status, batch.status, one.body, batch.body)
			}
			if one.status == 400 && one.at("error.details.fields") != nil {
				if got, want := batch.str("error.details.fields.0.field"), "events[1]."+one.str("error.details.fields.0.field"); got != want {
					t.Errorf("%s %.60s: the batch names %q, want %q", field, value, got, want)
				}
			}
		}
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Batch")
	id := w.do("POST", "/v1/sessions", oneGB, a.as).want(201).str("data.session_id")
	ended := w.do("POST", "/v1/sessions", oneGB, a.as).want(201).str("data.session_id")
	w.do("DELETE", "/v1/sessions/"+ended, "", a.as).want(200)
	event := `{"session_id":"` + id + `","event_type":"success"}`
	many := func(n int) string {
		return `{"events":[` + strings.TrimSuffix(strings.Repeat(event+",", n), ",") + `]}`
	}
	for body, field := range map[string]string{
		`{}`: "events", `{"events":null}`: "events", `{"events":{}}`: "events", `{"events":"x"}`: "events", `{"events":[]}`: "events", many(1001): "events",
		`{"events":[1]}`: "events[0]", `{"events":[null]}`: "events[0]", `{"events":[` + event + `,[]]}`: "events[1]", `{"events":[{}]}`: "events[0].session_id",
		`{"events":[{"session_id":"","event_type":"success"}]}`:                                         "events[0].session_id",
		`{"events":[{"session_id":null,"event_type":"success"}]}`:                                       "events[0].session_id",
		`{"events":[{"session_id":1,"event_type":"success"}]}`:                                          "events[0].session_id",
		`{"events":[{"session_id":"x"}]}`:                                                               "events[0].event_type",
		`{"events":[{"session_id":"x","event_type":null}]}`:                                             "events[0].event_type",
		`{"events":[` + event + `,` + event + `,` + event + `,{"session_id":"x","event_type":"nope"}]}`: "events[3].event_type",
	} {
		r := w.do("POST", "/v1/telemetry/batch", body, a.as).refused(400, "INVALID_REQUEST")
		if !strings.Contains(text(r.at("error.details.fields")), `"field":"`+field+`"`) {
			t.Errorf("%.100s: %.300s does not name %s", body, r.body, field)
		}
	}
	if got := w.do("GET", "/v1/sessions/"+id+"/health", "", a.as).num("data.stats.total_events"); got != 0 {
		t.Errorf("a refused batch recorded %v events", got)
	}
	if got := w.do("POST", "/v1/telemetry/batch", many(1000), a.as).want(200).num("data.processed"); got != 1000 {
		t.Errorf("processed %v", got)
	}
	r := w.do(
		"POST",
		"/v1/telemetry/batch",
		` {"x":[{"events":[1]}],"events" : [ `+event+` , {"session_id":"`+ended+`","event_type":"block","y":{"z":[1,"]"]}},
		{"event_type":"bl\u006fck","se\u0073sion_id":"s\u00e9"}],"z":"}"} `,
		a.as,
	).want(
		200,
	)
	if r.num("data.processed") != 1 || r.num("data.rejected") != 2 ||
		r.str("data.results.1.error.code") != "SESSION_EXPIRED" ||
		r.str("data.results.2.session_id") != "sé" ||
		r.str("data.results.2.error.code") != "SESSION_NOT_FOUND" {
		t.Errorf("%s", r.body)
	}
	t.Run("markup is stored as text", func(t *testing.T) {
		const host, message = "<img src=x onerror=alert(1)>", "=cmd|' /C calc'!A0"
		w.do("POST", "/v1/sessions/"+id+"/report-event", `{"event_type":"custom","target_host":"`+host+`","error_message":"`+message+`"}`, a.as).want(200)
		r := w.do("GET", "/v1/sessions/"+id+"/events?page_size=1", "", a.as).want(200)
		if r.str("data.items.0.error_message") != message || r.str("data.items.0.target_host") != host {
			t.Errorf("%s", r.body)
		}
	})
}
