package wire

import (
	"context"
	"log/slog"
	"os"

	"go.uber.org/fx"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/httpapi"
	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/adapters/tracing"
	"agentproxy/app/operator"
	"agentproxy/app/throttle"
	"agentproxy/cmd/internal/version"
	"agentproxy/ports"
)

// tracerIn holds what is traced by. The operator's commands have no tracer, and the service none unless
// OpenTelemetry's variables ask for one.
type tracerIn struct {
	fx.In

	Tracer *tracing.Tracer `optional:"true"`
}

// openTracer opens the tracer, nil for none. It sends what is left when everything else has stopped.
func openTracer(lc fx.Lifecycle, log *slog.Logger) (*tracing.Tracer, error) {
	t, err := tracing.Open(context.Background(), version.String(), os.Getenv, log)
	lc.Append(fx.StopHook(t.Stop))
	return t, err
}

// traceRequests returns what traces requests, nil for none.
func traceRequests(t *tracing.Tracer) httpapi.Trace {
	if t == nil {
		return nil
	}
	return t.Request
}

func storageConfig(s configfile.Settings, t tracerIn, log *slog.Logger) storage.Config {
	c := storage.Config{Path: s.DatabasePath, URL: storage.URL(s.DatabaseURL), MaxConns: s.DatabaseConns,
		Seen: s.DatabaseSeen, Capacity: s.DatabaseCapacity, Host: system.Clock{}.Now, Logger: log}
	if t.Tracer != nil {
		c.Trace = t.Tracer
	}
	return c
}

// decorateStore has the operator's actions noted, the units of traced requests traced, and what agents have
// stored counted.
func decorateStore(store ports.Store, ids ports.IDs, t tracerIn, limits *throttle.Limits) ports.Store {
	return limits.Stored.Count(operator.Audited(t.Tracer.Store(store), ids))
}
