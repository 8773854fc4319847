package endpoint

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"agentproxy/domain"
	"agentproxy/ports"
)

// outages counts the calls that are answered 503, and logs why: once a second a cause, because there
// may be thousands of one.
type outages struct {
	log     *slog.Logger
	clock   ports.Clock
	metrics *metrics

	mu     sync.Mutex
	logged map[string]time.Time
	silent map[string]int // calls since then
}

// logOutagesEvery is how often one cause is logged.
const logOutagesEvery = time.Second

func newOutages(log *slog.Logger, clock ports.Clock, m *metrics) *outages {
	return &outages{log: log, clock: clock, metrics: m, logged: map[string]time.Time{}, silent: map[string]int{}}
}

// note takes the refusal of a call and the error behind it.
func (o *outages) note(c *Call, e *domain.Error, err error) {
	cause := causeOf(e, err)
	o.metrics.outages.WithLabelValues(cause).Inc()
	now := o.clock.Now()
	o.mu.Lock()
	last, known := o.logged[cause]
	if known && now.Sub(last) < logOutagesEvery && !now.Before(last) {
		o.silent[cause]++
		o.mu.Unlock()
		return
	}
	silent := o.silent[cause]
	o.logged[cause], o.silent[cause] = now, 0
	o.mu.Unlock()
	o.log.LogAttrs(c, slog.LevelWarn, "the service is unavailable", slog.String("cause", cause),
		slog.String("request_id", c.id), slog.String("route", c.route()), slog.Int("more_since_last", silent),
		slog.Any("err", err))
}

// causeOf names why a call is answered 503: by the error that has a cause, or by the code of the
// refusal. Both are words of the program, so they are few.
func causeOf(e *domain.Error, err error) string {
	var known interface {
		error
		Cause() string
	}
	switch {
	case errors.As(err, &known):
		return strings.ReplaceAll(known.Cause(), " ", "_")
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	}
	return strings.ToLower(e.Code)
}
