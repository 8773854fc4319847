package feed

import "agentproxy/ports"

// repos is the repositories of feeds.
type repos interface {
	Outbox() ports.Outbox
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
