package httpapi_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"agentproxy/domain/exit"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
)

// Tags are texts, so they repeat the bounds of the domain.
func TestDocumentHasTheBoundsOfTheDomain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]map[string]any
			}
		}
	}
	w.must(json.Unmarshal(documentOf(w.server), &doc))
	city := fmt.Sprintf("^%s{0,%d}$", session.LabelClass, session.MaxLabel)
	for _, want := range []struct {
		schema, field, keyword string
		value                  any
	}{
		{"CreateFlat", "product_no", "maxLength", session.MaxLabel},
		{"CreateFlat", "duration", "maximum", session.MaxDays},
		{"CreateFlat", "city", "pattern", city},
		{"CreateFlat", "rotation_interval_seconds", "minimum", session.MinInterval.Seconds()},
		{"CreateFlat", "rotation_interval_seconds", "maximum", session.MaxInterval.Seconds()},
		{"CreateConfig", "product_no", "maxLength", session.MaxLabel},
		{"CreateConfig", "duration_days", "maximum", session.MaxDays},
		{"CreateConfig", "city", "pattern", city},
		{"CreateRotation", "interval_seconds", "minimum", session.MinInterval.Seconds()},
		{"CreateRotation", "interval_seconds", "maximum", session.MaxInterval.Seconds()},
		{"RenewRequest", "duration_days", "maximum", session.MaxDays},
		{"AutoTopUpRequest", "below_percent", "maximum", session.MaxBelowPercent},
		{"AutoTopUpRequest", "max_per_day", "maximum", session.MaxTopUpsPerDay},
		{"Require", "attempts", "maximum", exit.MaxAttempts},
		{"MakeWorkersRequest", "count", "maximum", worker.MaxPerSession},
		{"MakeWorkersRequest", "ttl_seconds", "minimum", worker.MinTTL.Seconds()},
		{"MakeWorkersRequest", "ttl_seconds", "maximum", worker.MaxTTL.Seconds()},
		{"EventRequest", "status_code", "maximum", health.MaxStatusCode},
		{"EventRequest", "latency_ms", "maximum", health.MaxLatencyMS},
		{"EventRequest", "target_host", "maxLength", health.MaxHost},
		{"EventRequest", "error_message", "maxLength", health.MaxErrorMessage},
		{"EventRequest", "worker", "maxLength", worker.MaxName},
	} {
		if n, ok := want.value.(int); ok {
			want.value = float64(n)
		}
		if got := doc.Components.Schemas[want.schema].Properties[want.field][want.keyword]; got != want.value {
			t.Errorf("the %s of %s.%s is %v, in the domain %v", want.keyword, want.schema, want.field, got, want.value)
		}
	}
}
