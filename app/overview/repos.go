package overview

import "agentproxy/ports"

// repos is the repositories that overviews read.
type repos interface {
	Events() ports.Events
	Health() ports.Health
	Statements() ports.Statements
	Sessions() ports.Sessions
	Workers() ports.Workers
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
