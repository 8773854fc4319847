package work

import (
	"agentproxy/domain/account"
	"agentproxy/domain/webhook"
)

// Batch answers from the rows that were read ahead for the units of one transaction, and keeps what
// they write until all have run. What it was not given makes the unit run again alone: its methods
// return an error then, which the repository passes on.
type Batch interface {
	// Agent returns the account with an id.
	Agent(id string) (account.Agent, error)
	// Endpoint returns the webhook of an agent.
	Endpoint(agentID string) (webhook.Endpoint, error)
	// PendingDeliveries counts the pending deliveries of an agent, up to a limit.
	PendingDeliveries(agentID string, limit int) (int, error)
	// InsertDelivery inserts a delivery whose event is new.
	InsertDelivery(d webhook.Delivery) error
	// MarkNotified sets the mark of what an agent is notified of, and reports whether it changed.
	MarkNotified(agentID, what string, to int64) (changed bool, err error)
	// AppendOutbox keeps an event of a webhook, whose data is given as JSON.
	AppendOutbox(e webhook.Event, data string)
}
