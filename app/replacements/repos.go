package replacements

import (
	"agentproxy/app/sessions"
	"agentproxy/ports"
)

// Repos is the repositories that replacements use.
type Repos = sessions.Repos

func narrow(store ports.Store) ports.Unit[Repos] {
	return ports.Narrow(store, func(tx ports.Tx) Repos { return tx })
}
