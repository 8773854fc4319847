package accounts

import (
	"agentproxy/app/ordering"
	"agentproxy/ports"
)

// repos is the repositories that the use cases of accounts use.
type repos interface {
	ordering.Repos
	Agents() ports.Agents
	Referrers() ports.Referrers
	Trials() ports.Trials
	Keys() ports.Keys
	KeyWallets() ports.KeyWallets
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
