package fulfilment

import "agentproxy/ports"

// repos is the repositories that this package uses.
type repos interface {
	Orders() ports.Orders
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
