package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// Sender returns a sender whose deliveries are spans.
func (t *Tracer) Sender(s ports.Sender) ports.Sender {
	if t == nil {
		return s
	}
	return sender{s, t}
}

type sender struct {
	ports.Sender
	tracer *Tracer
}

// Send sends a message. Its URL, which may hold a secret, is in no attribute.
func (s sender) Send(ctx context.Context, m ports.Message) (webhook.Outcome, error) {
	ctx, span := s.tracer.spans.Start(ctx, "webhook", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("agentproxy.event_id", m.ID)))
	defer span.End()
	outcome, err := s.Sender.Send(ctx, m)
	if outcome.StatusCode > 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", outcome.StatusCode))
	}
	if err != nil || outcome.StatusCode < 200 || outcome.StatusCode > 299 {
		span.SetStatus(codes.Error, "")
	}
	return outcome, err
}
