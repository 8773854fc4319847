package tracing_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"agentproxy/adapters/tracing"
	"agentproxy/domain"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// recorded returns a tracer, and what lists its spans with their parents and attributes.
func recorded(t *testing.T) (*tracing.Tracer, func() map[string]string) {
	t.Helper()
	memory := tracetest.NewInMemoryExporter()
	tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSyncer(memory)))
	return tracer, func() map[string]string {
		names, out := map[string]string{}, map[string]string{}
		spans := memory.GetSpans()
		for _, s := range spans {
			names[s.SpanContext.SpanID().String()] = s.Name
		}
		for _, s := range spans {
			text := names[s.Parent.SpanID().String()] + "|" + s.Status.Code.String()
			for _, a := range s.Attributes {
				text += "|" + string(a.Key) + "=" + a.Value.String()
			}
			out[s.Name] = text + s.SpanContext.TraceState().String()
		}
		return out
	}
}

// store runs units and has no database.
type store struct{ ports.Store }

func (store) Update(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	return fn(ctx, nil)
}
func (store) View(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	return fn(ctx, nil)
}
func (store) Read(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	return fn(ctx, nil)
}

type sender struct{ ports.Sender }

func (sender) Send(context.Context, ports.Message) (webhook.Outcome, error) {
	return webhook.Outcome{StatusCode: 503}, nil
}

func TestARequestIsATrace(t *testing.T) {
	t.Parallel()
	tracer, spans := recorded(t)
	units := tracer.Store(store{})
	r := httptest.NewRequest("POST", "/v1/sessions/secret-of-the-path?x=secret-of-the-query", nil)
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	r.Header.Set("Tracestate", "vendor=secret-of-the-state")
	r.Header.Set("Authorization", "Bearer secret-of-the-agent")
	ctx, end := tracer.Request(r, "POST", "/v1/sessions/:id", "req_1")
	refusal := domain.InvalidField("secret-field", "secret-text")
	err := units.Update(ctx, ports.ReadSet{}, func(ctx context.Context, _ ports.Tx) error {
		tracer.Statement(ctx, "SELECT 1\n  FROM sessions WHERE id = ?1", time.Now(), nil)
		return refusal
	})
	if !errors.Is(err, refusal) {
		t.Errorf("the unit returned %v", err)
	}
	_ = units.View(ctx, ports.ReadSet{}, func(context.Context, ports.Tx) error { return errors.New("secret-failure") })
	_ = units.Read(ctx, func(context.Context, ports.Tx) error { return nil })
	_, _ = tracer.Sender(sender{}).Send(ctx, ports.Message{ID: "evt_1", URL: "https://secret.example/secret", Secrets: []string{"secret"}})
	end(502)
	want := map[string]string{
		"POST /v1/sessions/:id": "|Error|http.request.method=POST|http.route=/v1/sessions/:id|agentproxy.request_id=req_1|http.response.status_code=502",
		"unit update":           "POST /v1/sessions/:id|Unset|error.type=INVALID_REQUEST",
		"unit view":             "POST /v1/sessions/:id|Error",
		"unit read":             "POST /v1/sessions/:id|Unset",
		"SQL SELECT":            "unit update|Unset|db.query.text=SELECT 1 FROM sessions WHERE id = ?1",
		"webhook":               "POST /v1/sessions/:id|Error|agentproxy.event_id=evt_1|http.response.status_code=503",
	}
	got := spans()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	for name, text := range got {
		if strings.Contains(text, "secret") {
			t.Errorf("%s reveals %s", name, text)
		}
	}
}

// The trace of a caller is gone on with, and what belongs to no trace is not traced.
func TestWhatIsTraced(t *testing.T) {
	t.Parallel()
	memory := tracetest.NewInMemoryExporter()
	tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSyncer(memory)))
	_ = tracer.Store(store{}).Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, _ ports.Tx) error {
		tracer.Statement(ctx, "SELECT 1", time.Now(), nil)
		return nil
	})
	if n := len(memory.GetSpans()); n != 0 {
		t.Errorf("%d spans of a unit in the background", n)
	}
	for header, want := range map[string]string{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": "0af7651916cd43dd8448eb211c80319c",
		"nonsense": "", "": "", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00": "none"} {
		memory.Reset()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Traceparent", header)
		_, end := tracer.Request(r, "GET", "/", "req_1")
		end(200)
		spans := memory.GetSpans()
		if want == "none" {
			if len(spans) != 0 {
				t.Error("a request is traced that its caller does not trace")
			}
			continue
		}
		if len(spans) != 1 {
			t.Fatalf("%q: %d spans", header, len(spans))
		}
		if got := spans[0].SpanContext.TraceID().String(); want != "" && got != want || want == "" && spans[0].Parent.IsValid() {
			t.Errorf("%q: the trace %s", header, got)
		}
	}
}

// Without a tracer nothing is decorated.
func TestNoTracerCostsNothing(t *testing.T) {
	t.Parallel()
	var none *tracing.Tracer
	s := ports.Store(store{})
	if none.Store(s) != s || none.Sender(sender{}) != ports.Sender(sender{}) || none.Stop(t.Context()) != nil {
		t.Error("something is decorated")
	}
}

func TestVariablesTurnTracesOn(t *testing.T) {
	const endpoint = "http://127.0.0.1:1"
	for _, c := range []struct {
		what     string
		env      map[string]string
		on, fail bool
	}{
		{"nothing", nil, false, false},
		{"an endpoint", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, true, false},
		{"an endpoint of traces", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint + "/v1/traces"}, true, false},
		{"an exporter", map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, false},
		{"no exporter", map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, false, false},
		{"no SDK", map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, false, false},
		{"another exporter", map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, false, true},
		{"no URL", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, false, true},
		{"another sampler", map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_TRACES_SAMPLER": "jaeger_remote"}, false, true},
		{"no ratio", map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_TRACES_SAMPLER": "traceidratio",
			"OTEL_TRACES_SAMPLER_ARG": "NaN"}, false, true},
		{"another protocol", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, true},
	} {
		tracer, err := tracing.Open(t.Context(), "test", func(name string) string { return c.env[name] }, slog.New(slog.DiscardHandler))
		if (tracer != nil) != c.on || (err != nil) != c.fail {
			t.Errorf("%s: %v, %v", c.what, tracer, err)
		}
		if err := tracer.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A collector that never answers delays no call and loses what its queue has no room for; Stop gives up
// on it.
func TestACollectorThatHangsDelaysNothing(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	tracer, err := tracing.Open(t.Context(), "test", os.Getenv, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer otel.SetTracerProvider(noop.NewTracerProvider())
	for range 5_000 { // the queue has 2,048
		_, end := tracer.Request(httptest.NewRequest("GET", "/", nil), "GET", "/", "req_1")
		end(200)
	}
	tracing.SetStopWithin(time.Millisecond)
	if err := tracer.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// Stop sends what waits, with the name of the service.
func TestStopSendsWhatIsLeft(t *testing.T) {
	received := make(chan *collector.ExportTraceServiceRequest, 4)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err = errors.Join(err, proto.Unmarshal(body, &sent)); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		received <- &sent
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_SERVICE_NAME", "proxies-of-the-north")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "600000") // it sends nothing by itself
	tracer, err := tracing.Open(t.Context(), "test", os.Getenv, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer otel.SetTracerProvider(noop.NewTracerProvider())
	_, end := tracer.Request(httptest.NewRequest("GET", "/", nil), "GET", "/v1/products", "req_1")
	end(200)
	tracing.SetStopWithin(time.Minute)
	if err := tracer.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case sent := <-received:
		of := sent.ResourceSpans[0]
		if of.ScopeSpans[0].Spans[0].Name != "GET /v1/products" || !strings.Contains(of.Resource.String(), "proxies-of-the-north") {
			t.Errorf("it sent %v", sent)
		}
	default:
		t.Error("it sent nothing")
	}
}

// What is logged of a failure has no URL, and is bounded.
func TestFailuresDoNotTellTheCollector(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		&url.Error{Op: "Post", URL: "https://host.example/secret", Err: errors.New("refused")},
		errors.New("failed to send to https://host.example/secret: 401 (body: " + strings.Repeat("é", 1000) + ")"),
	} {
		if text := tracing.WithoutURL(err); strings.Contains(text, "secret") || len(text) > 300 || !utf8.ValidString(text) {
			t.Errorf("%q is logged", text)
		}
	}
}
