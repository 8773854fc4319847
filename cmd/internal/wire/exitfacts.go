package wire

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"go.uber.org/fx"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/exitfacts"
	"agentproxy/adapters/queue"
	"agentproxy/app/changes"
	"agentproxy/app/sessions"
	"agentproxy/domain/exit"
	"agentproxy/ports"
)

// exitDatabase reads a MaxMind database.
func exitDatabase(file string) (func(netip.Addr) exit.Known, exit.Fields, time.Time, error) {
	d, err := exitfacts.OpenDatabase(file)
	if err != nil {
		return nil, exit.Fields{}, time.Time{}, err
	}
	return d.Lookup, d.Has(), d.Built(), nil
}

// exitSources returns the sources that are configured.
func exitSources(list []configfile.ExitSource) (all []exitfacts.Source) {
	for _, s := range list {
		all = append(all, exitfacts.Source{File: s.File, Has: s.Has,
			List: exitfacts.List{Zone: s.Zone, Label: s.Label, Resolver: s.Resolver}})
	}
	return all
}

func newExitFacts(s configfile.Settings) (*exitfacts.Facts, ports.ExitFacts) {
	f := exitfacts.New(exitSources(s.Catalog.ExitFacts))
	return f, f
}

// measureExits measures exits in the process that leads, each time that they change and once a day.
func measureExits(lc fx.Lifecycle, log *slog.Logger, hub *changes.Hub, checks *sessions.Checks, q *queue.Queue) {
	hub.Watch(checks)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	lc.Append(fx.StartStopHook(func() {
		wg.Go(func() {
			loop(ctx, task{name: "measure exits", every: sessions.MeasureEvery, run: checks.Measure, leads: q.Leads}, log)
		})
	}, func() { cancel(); wg.Wait() }))
}
