package maintenance

import (
	"agentproxy/app/metering"
	"agentproxy/ports"
)

// repos is the repositories that the tasks and jobs use.
type repos interface {
	metering.Repos
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
