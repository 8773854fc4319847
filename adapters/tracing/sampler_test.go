package tracing_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"agentproxy/adapters/tracing"
)

// A caller who asks for each of its requests to be traced, by the flag or by an id that a ratio takes, is
// followed up to a limit.
func TestCallersDoNotDecideHowMuchIsTraced(t *testing.T) {
	t.Parallel()
	const follow, calls = 7, 200
	for name, c := range map[string]struct {
		sampler, arg, flag string
		parents            bool // the requests have a traceparent
		least, most        int
	}{
		"unset, asked for":              {"", "", "01", true, calls, calls},
		"unset, asked not to":           {"", "", "00", true, 0, 0},
		"all, asked not to":             {"always_on", "", "00", true, calls, calls},
		"none, asked for":               {"always_off", "", "01", true, 0, 0},
		"parents, asked for":            {"parentbased_always_off", "", "01", true, follow, follow},
		"parents, asked not to":         {"parentbased_traceidratio", "1", "00", true, 0, 0},
		"a ratio of parents, asked for": {"parentbased_traceidratio", "0", "01", true, follow, follow},
		"a ratio, an id that it takes":  {"traceidratio", "0.5", "01", true, 50, 150},
		"a ratio without parents":       {"parentbased_traceidratio", "0", "", false, 0, 0},
	} {
		memory := tracetest.NewInMemoryExporter()
		sampler, err := tracing.SamplerOf(func(name string) string {
			return map[string]string{"OTEL_TRACES_SAMPLER": c.sampler, "OTEL_TRACES_SAMPLER_ARG": c.arg}[name]
		}, follow)
		if err != nil {
			t.Fatal(err)
		}
		tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSyncer(memory), sdk.WithSampler(sampler)))
		for n := range calls {
			r := httptest.NewRequest("GET", "/", nil)
			if c.parents { // a ratio takes ids whose second half is small
				r.Header.Set("Traceparent", fmt.Sprintf("00-%016x%016x-b7ad6b7169203331-%s", n+1, 1, c.flag))
			}
			_, end := tracer.Request(r, "GET", "/", "req_1")
			end(200)
		}
		if n := len(memory.GetSpans()); n < c.least || n > c.most {
			t.Errorf("%s: %d of %d requests are traced", name, n, calls)
		}
	}
}

// A job goes on with the trace of what inserted it, whatever callers may ask for by now.
func TestAJobGoesOnWithATrace(t *testing.T) {
	t.Parallel()
	memory := tracetest.NewInMemoryExporter()
	sampler, err := tracing.SamplerOf(func(string) string { return "" }, 0)
	if err != nil {
		t.Fatal(err)
	}
	tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSyncer(memory), sdk.WithSampler(sampler)))
	ctx, end := tracer.Request(httptest.NewRequest("POST", "/", nil), "POST", "/", "req_1")
	parent := tracer.Traceparent(ctx)
	end(201)
	inside, done := tracer.Job(t.Context(), "deliver", parent)
	if tracer.Traceparent(inside) == parent {
		t.Error("what a job inserts has not the job as its parent")
	}
	done(nil)
	spans := memory.GetSpans()
	if len(spans) != 2 || spans[1].Name != "job deliver" || spans[1].Parent.SpanID() != spans[0].SpanContext.SpanID() ||
		spans[1].SpanContext.TraceID() != spans[0].SpanContext.TraceID() {
		t.Errorf("the spans are %+v", spans)
	}
	if got := tracer.Traceparent(t.Context()); got != "" {
		t.Errorf("what is not traced has the parent %s", got)
	}
}
