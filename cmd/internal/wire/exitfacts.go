package wire

import (
	"net/netip"
	"time"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/exitfacts"
	"agentproxy/domain/exit"
	"agentproxy/ports"
)

// exitDatabase reads a MaxMind database.
func exitDatabase(file string) (func(netip.Addr) exit.Known, time.Time, error) {
	d, err := exitfacts.OpenDatabase(file)
	if err != nil {
		return nil, time.Time{}, err
	}
	return d.Lookup, d.Built(), nil
}

// exitSources returns the sources that are configured.
func exitSources(list []configfile.ExitSource) (all []exitfacts.Source) {
	for _, s := range list {
		all = append(all, exitfacts.Source{File: s.File,
			List: exitfacts.List{Zone: s.Zone, Label: s.Label, Resolver: s.Resolver}})
	}
	return all
}

func newExitFacts(s configfile.Settings) (*exitfacts.Facts, ports.ExitFacts) {
	f := exitfacts.New(exitSources(s.Catalog.ExitFacts))
	return f, f
}
