package payments

import (
	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/ports"
)

// repos is the repositories that the use cases of payments use.
type repos interface {
	idempotency.Repos
	ledger.Repos
	Agents() ports.Agents
	PayAddresses() ports.PayAddresses
	Recharges() ports.Recharges
	Transfers() ports.Transfers
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
