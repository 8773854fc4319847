package tracing

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"agentproxy/domain"
	"agentproxy/ports"
)

// Store returns a store whose units of work are spans of the trace that they belong to. Those of no
// trace, such as the periodic ones, are not traced.
func (t *Tracer) Store(s ports.Store) ports.Store {
	if t == nil {
		return s
	}
	return store{s, t}
}

type store struct {
	ports.Store
	tracer *Tracer
}

func (s store) View(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	return s.unit(ctx, "view", reads, s.Store.View, fn)
}

func (s store) Read(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	read := func(ctx context.Context, _ ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
		return s.Store.Read(ctx, fn)
	}
	return s.unit(ctx, "read", ports.ReadSet{}, read, fn)
}

func (s store) Update(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	return s.unit(ctx, "update", reads, s.Store.Update, fn)
}

func (s store) unit(
	ctx context.Context, kind string, reads ports.ReadSet,
	run func(context.Context, ports.ReadSet, func(context.Context, ports.Tx) error) error,
	fn func(context.Context, ports.Tx) error,
) error {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return run(ctx, reads, fn)
	}
	ctx, span := s.tracer.spans.Start(ctx, "unit "+kind)
	defer span.End() // after a panic of fn, too
	err := run(ctx, reads, fn)
	fail(span, err)
	return err
}

// fail notes an error by its code. Its text may hold what was sent.
func fail(span trace.Span, err error) {
	if err == nil {
		return
	}
	refusal, ok := errors.AsType[*domain.Error](err)
	if ok {
		span.SetAttributes(attribute.String("error.type", refusal.Code))
	}
	if !ok || refusal.Kind == domain.Internal || errors.Is(err, domain.ErrUnavailable) {
		span.SetStatus(codes.Error, "")
	}
}

// maxStatement bounds the text of a statement in a span, in bytes.
const maxStatement = 500

// Statement makes the span of a statement that ended, if what it belongs to is traced.
func (t *Tracer) Statement(ctx context.Context, statement string, began time.Time, err error) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return
	}
	text := strings.Join(strings.Fields(statement), " ")
	name, _, _ := strings.Cut(text, " ")
	name = strings.TrimSuffix(name, ":")
	_, span := t.spans.Start(ctx, "SQL "+name, trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("db.query.text", strings.ToValidUTF8(text[:min(len(text), maxStatement)], ""))))
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
