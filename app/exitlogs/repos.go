package exitlogs

import "agentproxy/ports"

// repos is the repository that the use cases use.
type repos interface{ ExitLog() ports.ExitLog }

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
