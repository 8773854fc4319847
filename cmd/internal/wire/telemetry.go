package wire

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"agentproxy/adapters/admin"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/nats"
	"agentproxy/app/telemetry"
	"agentproxy/app/throttle"
	"agentproxy/ports"
)

// newTelemetryQueue returns the configured queue of telemetry, or nil.
func newTelemetryQueue(lc fx.Lifecycle, s configfile.Settings, log *slog.Logger) (*nats.Queue, error) {
	if s.TelemetryURL == "" {
		return nil, nil
	}
	q, err := nats.New(nats.Config{URL: string(s.TelemetryURL), Log: log})
	if err != nil {
		return nil, fmt.Errorf("AGENTPROXY_TELEMETRY_URL: %w", err)
	}
	lc.Append(fx.StopHook(q.Close))
	return q, nil
}

func newTelemetry(
	store ports.Store, clock ports.Clock, ids ports.IDs, observer *telemetry.Observer, q *nats.Queue,
	limits *throttle.Limits,
) *telemetry.Service {
	t := telemetry.New(store, clock, ids, observer)
	if q != nil {
		t.WithQueue(limits.Stored.CountQueue(q))
	}
	return t
}

// foldTelemetry folds the queues of this replica for as long as the application runs.
func foldTelemetry(lc fx.Lifecycle, q *nats.Queue, t *telemetry.Service, registry *prometheus.Registry) error {
	if q == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	lc.Append(fx.StartStopHook(func() { wg.Go(func() { q.Consume(ctx, t.Fold) }) }, func() { cancel(); wg.Wait() }))
	return registry.Register(q)
}

// telemetryCheck shows whether the queue of telemetry answers, if there is one. A replica without it
// stays ready: all but reports works.
func telemetryCheck(q *nats.Queue) []admin.Check {
	if q == nil {
		return nil
	}
	return []admin.Check{{Name: "telemetry queue", Run: func(context.Context) error { return nil }, Note: func() string {
		if q.Connected() {
			return ""
		}
		return "away; reports are answered 503"
	}}}
}
