package workers

import (
	"agentproxy/app/notify"
	"agentproxy/ports"
)

// Repos is the repositories that the use cases of workers use.
type Repos interface {
	notify.Repos
	Sessions() ports.Sessions
	Workers() ports.Workers
	Traffic() ports.Traffic
	Events() ports.Events
	Counters() ports.Counters
	Idempotency() ports.Idempotency
	ExitMeasures() ports.ExitMeasures
}

func narrow(store ports.Store) ports.Unit[Repos] {
	return ports.Narrow(store, func(tx ports.Tx) Repos { return tx })
}
