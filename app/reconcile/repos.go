package reconcile

import "agentproxy/ports"

// repos is the repositories that the reconciliation reads and writes.
type repos interface {
	Orders() ports.Orders
	Sessions() ports.Sessions
	Addresses() ports.Addresses
	Reconciliations() ports.Reconciliations
	UsageCounts() ports.UsageCounts
	Traffic() ports.Traffic
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
