package direct

import (
	"agentproxy/app/ledger"
	"agentproxy/ports"
)

// Repos is the repositories that book and settle a direct session.
type Repos interface {
	ledger.Repos
	Orders() ports.Orders
	Sessions() ports.Sessions
	Counters() ports.Counters
}

func narrow(store ports.Store) ports.Unit[Repos] {
	return ports.Narrow(store, func(tx ports.Tx) Repos { return tx })
}
