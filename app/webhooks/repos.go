package webhooks

import (
	"agentproxy/app/notify"
	"agentproxy/ports"
)

// repos is the repositories that the use cases of webhooks use.
type repos interface {
	notify.Repos
	Agents() ports.Agents
	Idempotency() ports.Idempotency
	Ledger() ports.Ledger
	Sessions() ports.Sessions
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
