package sessions

import (
	"agentproxy/app/ordering"
	"agentproxy/ports"
)

// Repos is the repositories that the use cases of sessions use.
type Repos interface {
	ordering.Repos
	Agents() ports.Agents
	Health() ports.Health
	Policies() ports.Policies
	Workers() ports.Workers
	Peers() ports.Peers
	Keys() ports.Keys
	ExitMeasures() ports.ExitMeasures
}

func narrow(store ports.Store) ports.Unit[Repos] {
	return ports.Narrow(store, func(tx ports.Tx) Repos { return tx })
}
