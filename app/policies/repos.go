package policies

import "agentproxy/ports"

// repos is the repositories that the use cases of policies use.
type repos interface {
	Sessions() ports.Sessions
	Policies() ports.Policies
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
