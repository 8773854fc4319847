package reveals

import "agentproxy/ports"

// Repos is the repositories that reveals use.
type Repos interface {
	Idempotency() ports.Idempotency
	Events() ports.Events
}

func narrow(store ports.Store) ports.Unit[Repos] {
	return ports.Narrow(store, func(tx ports.Tx) Repos { return tx })
}
