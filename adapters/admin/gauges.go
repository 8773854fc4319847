package admin

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Gauge is a number that is read at a scrape, mostly out of the database. It has
// no labels, so no id can become one, unless it is one for each provider, or for each provider and country: those are
// few, and the operator named them.
type Gauge struct {
	Name string // begins with agentproxy_
	Help string
	Read func(context.Context) (float64, error)
	// ByProvider reads the numbers of all providers, instead of Read.
	ByProvider func(context.Context) (map[string]float64, error)
	// ByPlace reads the numbers of all providers and countries (ISO 3166-1), instead of Read.
	ByPlace func(context.Context) (map[Place]float64, error)
}

// Place is a provider and a country as sold, which may be empty.
type Place struct{ Provider, Country string }

// labels returns the names of the labels.
func (g Gauge) labels() []string {
	switch {
	case g.ByPlace != nil:
		return []string{"provider", "country"}
	case g.ByProvider != nil:
		return []string{"provider"}
	}
	return nil
}

// read returns the numbers by the values of the labels.
func (g Gauge) read(ctx context.Context) (map[Place]float64, error) {
	switch {
	case g.ByPlace != nil:
		return g.ByPlace(ctx)
	case g.ByProvider != nil:
		found, err := g.ByProvider(ctx)
		values := make(map[Place]float64, len(found))
		for provider, value := range found {
			values[Place{Provider: provider}] = value
		}
		return values, err
	}
	value, err := g.Read(ctx)
	return map[Place]float64{{}: value}, err
}

// reads returns how many functions a gauge has.
func (g Gauge) reads() (n int) {
	for _, has := range []bool{g.Read != nil, g.ByProvider != nil, g.ByPlace != nil} {
		if has {
			n++
		}
	}
	return n
}

// prefix begins the name of every series of the service.
const prefix = "agentproxy_"

// readers is the most gauges that are read at once, those that hang included.
const readers = 4

// gauges is a collector of Gauges. Each is read at most once in Config.ReadEvery,
// whatever the number of scrapes. A gauge that cannot be read is left out: an old
// value would look current.
type gauges struct {
	cfg    Config
	log    *slog.Logger
	work   *work
	slots  chan struct{}
	errors prometheus.Counter
	list   []*reading
}

// reading is a gauge with its last value.
type reading struct {
	Gauge
	desc   *prometheus.Desc
	call   call[map[Place]float64]
	failed atomic.Bool

	mu    sync.Mutex
	at    time.Time
	value map[Place]float64
	err   error
}

// Register adds gauges to a registry. It is called once; Stop ends the reads.
func (s *Server) Register(registry prometheus.Registerer, list []Gauge) error {
	g := &gauges{cfg: s.cfg, log: s.log, work: s.work, slots: make(chan struct{}, readers)}
	g.errors = prometheus.NewCounter(prometheus.CounterOpts{Name: "agentproxy_scrape_errors_total",
		Help: "Gauges that were left out of a scrape because they could not be read."})
	names := map[string]bool{}
	for _, one := range list {
		if !strings.HasPrefix(one.Name, prefix) || one.Help == "" || one.reads() != 1 ||
			names[one.Name] {
			return fmt.Errorf("admin: the gauge %q needs a unique name with the prefix %s, a help text and a read function",
				one.Name, prefix)
		}
		names[one.Name] = true
		g.list = append(g.list, &reading{Gauge: one, desc: prometheus.NewDesc(one.Name, one.Help, one.labels(), nil),
			call: call[map[Place]float64]{work: s.work}})
	}
	if err := registry.Register(g); err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	g.errors.Describe(ch)
	for _, r := range g.list {
		ch <- r.desc
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(g.work.ctx, g.cfg.ReadTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, r := range g.list {
		wg.Go(func() {
			values, err := g.read(ctx, r)
			if err != nil {
				g.errors.Inc()
				return
			}
			for of, value := range values {
				labels := []string{of.Provider, of.Country}[:len(r.labels())]
				ch <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, value, labels...)
			}
		})
	}
	wg.Wait()
	ch <- g.errors
}

// read returns the numbers of a gauge, at most ReadEvery old.
func (g *gauges) read(ctx context.Context, r *reading) (map[Place]float64, error) {
	r.mu.Lock()
	if !r.at.IsZero() && time.Since(r.at) < g.cfg.ReadEvery {
		defer r.mu.Unlock()
		return r.value, r.err
	}
	r.mu.Unlock()
	value, err := r.call.do(ctx, g.cfg.ReadTimeout, func(ctx context.Context) (map[Place]float64, error) {
		select {
		case g.slots <- struct{}{}:
			defer func() { <-g.slots }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		value, err := r.Gauge.read(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.at, r.value, r.err = time.Now(), value, err
		return value, err
	})
	switch was := r.failed.Swap(err != nil); {
	case err != nil && !was:
		g.log.Warn("a gauge cannot be read", "gauge", r.Name, "err", err)
	case err == nil && was:
		g.log.Info("a gauge can be read again", "gauge", r.Name)
	}
	return value, err
}
