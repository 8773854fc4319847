package changes

import "agentproxy/ports"

// repos is the repositories that the hub uses.
type repos interface {
	Changes() ports.Changes
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
