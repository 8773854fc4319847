package ordering

import (
	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/ports"
)

// Repos is the repositories of an order and of the session that it is for, which
// Driver and Lifecycle use.
type Repos interface {
	idempotency.Repos
	ledger.Repos
	Agents() ports.Agents
	Orders() ports.Orders
	Sessions() ports.Sessions
	Counters() ports.Counters
	Events() ports.Events
	Replacements() ports.Replacements
}

func narrow(store ports.Store) ports.Unit[Repos] {
	return ports.Narrow(store, func(tx ports.Tx) Repos { return tx })
}
