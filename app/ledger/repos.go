package ledger

import "agentproxy/ports"

// repos is the repositories that the reads of an agent's money use.
type repos interface {
	Repos
	Statements() ports.Statements
	Agents() ports.Agents
	Counters() ports.Counters
	Sessions() ports.Sessions
	Health() ports.Health
	Workers() ports.Workers
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
