package maintenance

import (
	"agentproxy/app/traffic"
	"agentproxy/ports"
)

// repos is the repositories that the tasks and jobs use.
type repos interface {
	traffic.Repos
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
