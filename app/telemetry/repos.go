package telemetry

import (
	"agentproxy/app/notify"
	"agentproxy/ports"
)

// repos is the repositories that the use cases of telemetry use.
type repos interface {
	notify.Repos
	Events() ports.Events
	Health() ports.Health
	Workers() ports.Workers
	Counters() ports.Counters
	Peers() ports.Peers
	Folds() ports.Folds
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
