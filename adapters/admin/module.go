package admin

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/fx"
)

// Module serves the admin pages for as long as the application runs, and
// provides the *prometheus.Registry whose series they show. It needs a Config
// and a logger. It precedes the parts that it watches, so that it starts before
// and stops after them.
var Module = fx.Module("admin",
	fx.Provide(NewRegistry, newServer),
	fx.Invoke(func(lc fx.Lifecycle, s *Server) { lc.Append(fx.StartStopHook(s.Start, s.Stop)) }),
)

// Announce is the last part of a graph with Module: the service becomes ready when
// all parts before it have started, and unready when the stop begins, which it delays
// by Config.DrainDelay.
var Announce = fx.Invoke(func(lc fx.Lifecycle, s *Server) {
	s.Hold()
	lc.Append(fx.StartStopHook(s.Serving, s.Drain))
})

// NewRegistry returns a registry with the series of the Go runtime and of the
// process.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

const checkGroup, gaugeGroup = `group:"admin.checks,flatten"`, `group:"admin.gauges,flatten"`

// ProvideChecks adds the checks of a constructor that returns []Check.
func ProvideChecks(constructor any) fx.Option {
	return fx.Provide(fx.Annotate(constructor, fx.ResultTags(checkGroup)))
}

// ProvideGauges adds the gauges of a constructor that returns []Gauge.
func ProvideGauges(constructor any) fx.Option {
	return fx.Provide(fx.Annotate(constructor, fx.ResultTags(gaugeGroup)))
}

// params holds the parameters of New.
type params struct {
	fx.In

	Config   Config
	Checks   []Check `group:"admin.checks"`
	Gauges   []Gauge `group:"admin.gauges"`
	Registry *prometheus.Registry
	Log      *slog.Logger
}

func newServer(p params) (*Server, error) {
	s, err := New(p.Config, p.Checks, p.Registry, p.Log)
	if err != nil {
		return nil, err
	}
	return s, s.Register(p.Registry, p.Gauges)
}
