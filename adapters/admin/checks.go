package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Check is a condition of readiness. The error of Run is logged and not shown,
// because it may contain an address or a password; a Reason in it is shown.
type Check struct {
	Name string
	Run  func(context.Context) error
	// Note is shown after a check that passes, if it is not nil and returns a text.
	Note func() string
	// Shared is set for what concerns every replica and keeps none from serving: a failure is shown and logged, and
	// leaves the replica ready.
	Shared bool
}

// Reason is why a check failed, in a text that may be shown.
type Reason string

func (r Reason) Error() string { return string(r) }

// maxReason keeps a line of /readyz short.
const maxReason = 120

// probe is a check with its state.
type probe struct {
	Check
	call   call[struct{}]
	failed atomic.Bool
}

// Phases of the service, as set by Announce; 0 without it.
const (
	starting int32 = iota + 1
	serving
	stopping
)

// serviceLine is the name of the line with the phase.
const serviceLine = "service"

// Serving ends Hold: everything has started.
func (s *Server) Serving() { s.phase.Store(serving) }

// Hold makes the service not ready while its parts start.
func (s *Server) Hold() { s.phase.Store(starting) }

// Retire makes the service not ready because it is about to stop. The pages are
// still served, so that the stop can be watched.
func (s *Server) Retire() { s.phase.Store(stopping) }

// Drain is like Retire, and returns after Config.DrainDelay, or when the context ends: until load
// balancers have noticed that the service is not ready they send it requests, which it serves.
func (s *Server) Drain(ctx context.Context) error {
	s.Retire()
	if s.cfg.DrainDelay > 0 {
		s.log.Info("not ready any more; the listeners close after the drain delay", "delay", s.cfg.DrainDelay)
	}
	select {
	case <-time.After(s.cfg.DrainDelay):
	case <-ctx.Done():
	}
	return nil
}

// ready answers /readyz: a line for each check.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	lines, ok := s.examine(r.Context())
	status := http.StatusOK
	if !ok {
		status = http.StatusServiceUnavailable
	}
	plain(w, status, strings.Join(lines, ""))
}

// examine runs the checks at once. It returns a line for each and for the phase, and whether all hold.
func (s *Server) examine(ctx context.Context) (lines []string, ok bool) {
	lines = make([]string, len(s.checks))
	var wg sync.WaitGroup
	var failed atomic.Bool
	for i, p := range s.checks {
		wg.Go(func() {
			err := s.run(ctx, p)
			if lines[i] = line(p.Name, err); err == nil && p.Note != nil {
				lines[i] = noted(p.Name, p.Note())
			}
			if err != nil && !p.Shared {
				failed.Store(true)
			}
		})
	}
	wg.Wait()
	switch s.phase.Load() {
	case serving:
		lines = append(lines, line(serviceLine, nil))
	case starting:
		lines = append(lines, line(serviceLine, Reason("starting")))
		failed.Store(true)
	case stopping:
		lines = append(lines, line(serviceLine, Reason("stopping")))
		failed.Store(true)
	}
	if len(lines) == 0 {
		lines = append(lines, "ok\n")
	}
	return lines, !failed.Load()
}

// readiness is the series of /readyz. It is no Gauge: those wait for each other while the database hangs, and
// one that is late is left out, just when this one is needed.
type readiness struct{ of *Server }

var descReady = prometheus.NewDesc("agentproxy_ready", "1 while /readyz answers 200, as found at the scrape.", nil, nil)

// Describe implements prometheus.Collector.
func (r readiness) Describe(ch chan<- *prometheus.Desc) { ch <- descReady }

// Collect implements prometheus.Collector.
func (r readiness) Collect(ch chan<- prometheus.Metric) {
	value := 0.0
	if _, ok := r.of.examine(r.of.work.ctx); ok {
		value = 1
	}
	ch <- prometheus.MustNewConstMetric(descReady, prometheus.GaugeValue, value)
}

// run runs a check. It logs changes of the result alone, as an orchestrator asks
// every few seconds.
func (s *Server) run(ctx context.Context, p *probe) error {
	_, err := p.call.do(ctx, s.cfg.CheckTimeout,
		func(ctx context.Context) (struct{}, error) { return struct{}{}, p.Run(ctx) })
	if ctx.Err() != nil {
		return err // the request was canceled, which is not the check's result
	}
	switch was := p.failed.Swap(err != nil); {
	case err != nil && !was:
		s.log.Warn("readiness check failed", "check", p.Name, "err", err)
	case err == nil && was:
		s.log.Info("readiness check passes again", "check", p.Name)
	}
	return err
}

// noted returns the line of a check that passes, with a note.
func noted(name, note string) string {
	if note == "" {
		return line(name, nil)
	}
	return name + " ok: " + note + "\n"
}

func line(name string, err error) string {
	if err == nil {
		return name + " ok\n"
	}
	why := "error; see the log"
	var reason Reason
	switch {
	case errors.As(err, &reason):
		why = strings.Join(strings.Fields(string(reason)), " ")
		why = strings.ToValidUTF8(why[:min(len(why), maxReason)], "")
	case errors.Is(err, errTimeout):
		why = errTimeout.Error()
	}
	return fmt.Sprintf("%s failed: %s\n", name, why)
}
