package rest

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"agentproxy/domain/procurement"
)

// traced begins the span of a call with its waits and attempts. It has no path, which may hold a key. It
// costs nothing unless the program has a tracer.
func (c *Client) traced(ctx context.Context, method string) (context.Context, func(*procurement.Error)) {
	ctx, span := otel.Tracer("agentproxy").Start(ctx, "provider "+method, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("agentproxy.provider", c.Name),
			attribute.String("http.request.method", method)))
	return ctx, func(err *procurement.Error) {
		if err != nil {
			span.SetAttributes(attribute.String("error.type", string(err.Class)))
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}
