package tracing

import (
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/time/rate"
)

// SetStopWithin bounds how long Stop waits.
func SetStopWithin(d time.Duration) { stopWithin = d }

// SamplerOf returns the sampler that variables ask for. It follows n callers.
func SamplerOf(getenv func(string) string, n int) (sdk.Sampler, error) {
	s, err := samplerOf(getenv)
	if err != nil {
		return nil, err
	}
	s.follow = rate.NewLimiter(0, n)
	return s, nil
}

// WithoutURL returns what is logged of a failure.
var WithoutURL = withoutURL
