package tracing

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
)

// The limit of requests that are traced because their callers ask for it: per second, and the burst.
const (
	outsidePerSecond = 5
	outsideBurst     = 20
)

// samplerOf returns the sampler that OTEL_TRACES_SAMPLER names, parentbased_always_on unless it is set,
// with a bound on what callers decide.
func samplerOf(getenv func(string) string) (*sampler, error) {
	name := strings.ToLower(strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER")))
	kind, byParent := strings.CutPrefix(name, "parentbased_")
	var root sdk.Sampler
	switch kind {
	case "":
		root, byParent = sdk.AlwaysSample(), true
	case "always_on":
		root = sdk.AlwaysSample()
	case "always_off":
		root = sdk.NeverSample()
	case "traceidratio":
		ratio := 1.0
		if arg := strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER_ARG")); arg != "" {
			var err error
			if ratio, err = strconv.ParseFloat(arg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
				return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not %q", arg)
			}
		}
		root = sdk.TraceIDRatioBased(ratio)
	default:
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER must be always_on, always_off, traceidratio or one of them after "+
			"parentbased_, not %q", name)
	}
	return &sampler{sdk.ParentBased(root), root, byParent, rate.NewLimiter(outsidePerSecond, outsideBurst)}, nil
}

// sampler decides on requests with a traceparent by itself, as on those without one: a caller who sets
// the flag, or chooses an id of the trace that a ratio takes, would have each of its requests traced.
// One that is based on parents follows a caller's flag within a limit. Spans inside are sampled as the
// span around them.
type sampler struct {
	inside   sdk.Sampler
	root     sdk.Sampler
	byParent bool
	follow   *rate.Limiter
}

// Description names the sampler.
func (s *sampler) Description() string { return "agentproxy{" + s.root.Description() + "}" }

// ShouldSample decides on a span.
func (s *sampler) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	switch {
	case !parent.IsRemote():
		return s.inside.ShouldSample(p)
	case s.byParent && !parent.IsSampled():
		return sdk.SamplingResult{Decision: sdk.Drop}
	case s.byParent && s.follow.Allow():
		return sdk.SamplingResult{Decision: sdk.RecordAndSample}
	}
	binary.BigEndian.PutUint64(p.TraceID[:8], rand.Uint64())
	binary.BigEndian.PutUint64(p.TraceID[8:], rand.Uint64())
	return s.root.ShouldSample(p)
}
