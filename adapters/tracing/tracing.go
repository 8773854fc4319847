// Package tracing writes OpenTelemetry traces: a span for each request, each unit of work and its
// statements, each job that those insert, each call of a seller's API and each delivery of a webhook.
// Attributes hold names that the
// program or the operator chose, ids of requests and statements with placeholders; nothing that a client,
// an agent or a provider sent.
//
// A nil *Tracer traces nothing and costs nothing: what it decorates stays what it was.
package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes spans.
type Tracer struct {
	spans trace.Tracer
	w3c   propagation.TraceContext
	stop  func(context.Context) error
}

// New returns a tracer that gives its spans to a provider, which Stop shuts down.
func New(p *sdk.TracerProvider) *Tracer {
	return &Tracer{spans: p.Tracer("agentproxy"), stop: p.Shutdown}
}

// Open returns the tracer that the standard variables of OpenTelemetry ask for, nil if they ask for
// none. The SDK reads those of the exporter, the sampler, the batches and the resource by itself.
func Open(ctx context.Context, version string, getenv func(string) string, log *slog.Logger) (*Tracer, error) {
	on, err := enabled(getenv)
	if err != nil || !on {
		return nil, err
	}
	sampler, err := samplerOf(getenv)
	if err != nil {
		return nil, err
	}
	otel.SetLogger(logr.Discard()) // it would write headers and URLs, which may have secrets, to stderr
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("tracing: %s", withoutURL(err))
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "agentproxy"),
		attribute.String("service.version", version)), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	otel.SetErrorHandler(&faults{log: log})
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithSampler(sampler), sdk.WithResource(about))
	otel.SetTracerProvider(provider) // for clients that have no Tracer
	return New(provider), nil
}

// enabled reports whether the variables request traces. It refuses those that ask for what is not built.
func enabled(getenv func(string) string) (bool, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	endpoint := cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); {
	case exporter == "none", exporter == "" && endpoint == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER must be otlp or none, not %q", exporter)
	}
	u, err := url.Parse(endpoint)
	if endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return false, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT must be a URL of http or https, such as " +
			"http://127.0.0.1:4318")
	}
	protocol := cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), getenv("OTEL_EXPORTER_OTLP_PROTOCOL"))
	if protocol != "" && protocol != "http/protobuf" {
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, not %q; collectors take it at "+
			"port 4318", protocol)
	}
	return true, nil
}

// stopWithin bounds how long Stop waits for a collector; tests shorten it.
var stopWithin = 5 * time.Second

// Stop sends what is left.
func (t *Tracer) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	_ = t.stop(ctx) // a collector that is away must not fail the end of the program; faults has logged it
	return nil
}

// faults logs failures of the exporter, once a minute: a collector that is away fails each batch.
type faults struct {
	log  *slog.Logger
	last atomic.Int64 // seconds since 1970
}

// maxFault bounds the text of a failure in the log, in bytes: the answer of the collector is in it.
const maxFault = 300

// Handle logs a failure.
func (f *faults) Handle(err error) {
	now, last := time.Now().Unix(), f.last.Load()
	if now-last >= 60 && f.last.CompareAndSwap(last, now) {
		f.log.Warn("traces are lost: the collector does not take them", "err", withoutURL(err))
	}
}

var anyURL = regexp.MustCompile(`https?://[^\s"]+`)

// withoutURL leaves out the URL of the collector, which may have a secret, and what is long.
func withoutURL(err error) string {
	text := anyURL.ReplaceAllString(err.Error(), "(URL)")
	return strings.ToValidUTF8(text[:min(len(text), maxFault)], "")
}
