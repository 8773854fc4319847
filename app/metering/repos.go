package metering

import (
	"agentproxy/app/sessions"
	"agentproxy/ports"
)

// Repos is the repositories that the use cases of traffic use.
type Repos interface {
	sessions.Repos
}

func narrow(store ports.Store) ports.Unit[Repos] {
	return ports.Narrow(store, func(tx ports.Tx) Repos { return tx })
}
