package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceparent is the field of W3C Trace Context that is read and written. Its tracestate is left alone:
// it would put a text of the caller's into each span.
const traceparent = "traceparent"

// Request begins the span of a request to a route, which goes on with the trace that the caller's
// traceparent names. It returns the context of what the request does, and what ends the span with the
// status of the answer.
func (t *Tracer) Request(r *http.Request, method, route, id string) (context.Context, func(status int)) {
	ctx := r.Context()
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = t.w3c.Extract(ctx, propagation.MapCarrier{traceparent: r.Header.Get(traceparent)})
	}
	ctx, span := t.spans.Start(ctx, method+" "+route, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route),
			attribute.String("agentproxy.request_id", id)))
	return ctx, func(status int) {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// Traceparent returns that of a context's span, "" where it is not recorded.
func (t *Tracer) Traceparent(ctx context.Context) string {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	t.w3c.Inject(ctx, carrier)
	return carrier[traceparent]
}

// Job begins the span of a run of a job, in the trace of the unit that inserted it. The traceparent is one
// that Traceparent returned, so its decision to sample is followed.
func (t *Tracer) Job(ctx context.Context, kind, parent string) (context.Context, func(error)) {
	ctx = t.w3c.Extract(ctx, propagation.MapCarrier{traceparent: parent})
	ctx = trace.ContextWithSpanContext(ctx, trace.SpanContextFromContext(ctx).WithRemote(false))
	ctx, span := t.spans.Start(ctx, "job "+kind, trace.WithSpanKind(trace.SpanKindConsumer))
	return ctx, func(err error) {
		fail(span, err)
		span.End()
	}
}
