package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/procurement"
)

// OrderFilter narrows a list of orders; empty fields do not.
type OrderFilter struct {
	Status   procurement.Status
	Provider string
	Frozen   bool // only those that wait for the operator
}

// DueOrder is an order that is due, and whose session it is for.
type DueOrder struct {
	OrderID, SessionID, Provider, AgentID string
}

// LiveOrder is what a provider has for an active session.
type LiveOrder struct {
	Ref, SessionID, Product string
}

// SealedDelivery is what is stored of an order's delivery.
type SealedDelivery struct {
	Position int64 // in the list of all orders
	OrderID  string
	Sealed   []byte
}

// Orders stores the orders at providers, also those whose outcome is unknown.
type Orders interface {
	// Insert stores a planned order. It refuses one whose intent has another key or
	// another session.
	Insert(ctx context.Context, o procurement.Order) error
	// Get returns an order, or procurement.ErrOrderNotFound.
	Get(ctx context.Context, id string) (procurement.Order, error)
	// Put writes everything but id, kind, session, provider, intent and PlannedAt,
	// and notes a change of the session. A purchase that is confirmed with the ref
	// of another confirmed purchase is ErrDuplicate, whatever was read before; an
	// unknown id is procurement.ErrOrderNotFound.
	Put(ctx context.Context, o procurement.Order) error
	// Of lists the orders of a session, the newest first: of purchases and of
	// renewals the last 100 each.
	Of(ctx context.Context, sessionID string) ([]procurement.Order, error)
	// ByRef returns the confirmed order that has a ref at a provider, the purchase
	// before renewals of it, else procurement.ErrOrderNotFound.
	ByRef(ctx context.Context, provider, ref string) (procurement.Order, error)
	// List lists orders, the newest first.
	List(ctx context.Context, f OrderFilter, page domain.Page) (domain.List[procurement.Order], error)
	// Due lists orders whose NextAt has come: of each provider no more than the limit, in
	// turns by agent, and of each agent the longest due first. A session is listed once.
	Due(ctx context.Context, now time.Time, limit int) ([]DueOrder, error)
	// Waiting lists the planned orders of a provider that are like o, as in CountOpen, o
	// included: of each agent the oldest, no more than the limit, with its party and when an
	// order of that was last sent to the provider.
	Waiting(ctx context.Context, o procurement.Order, funding account.Funding, limit int) ([]procurement.Waiting, error)
	// CountOpen counts the other orders of a provider that are sent, or unknown and
	// not frozen, and of these the ones like o: the same SKU and country, where an
	// empty one is like any. It holds a lock on the provider until the unit ends, so that
	// of the units that call it for one provider one runs at a time.
	CountOpen(ctx context.Context, o procurement.Order) (open, like int, err error)
	// Known returns which of a provider's refs belong to an order.
	Known(ctx context.Context, provider string, refs []string) (map[string]bool, error)
	// Spent returns what confirmed orders of a provider that were sent at or after a time
	// cost in all. What was sent before may be in that time's balance already.
	Spent(ctx context.Context, provider string, since time.Time) (domain.Money, error)
	// Sealed lists sealed deliveries after a position, in the order in which the
	// orders were inserted.
	Sealed(ctx context.Context, after int64, limit int) ([]SealedDelivery, error)
	// Reseal replaces a sealed delivery; false if it is not the one that was listed
	// any more.
	Reseal(ctx context.Context, d SealedDelivery, sealed []byte) (bool, error)
	// KeepResealed keeps that every delivery is sealed under the current root secret now.
	KeepResealed(ctx context.Context) error
	// Owed counts, by provider, the confirmed purchases that are not closed, and of these
	// the ones with a LostAt and with a FrozenAt.
	Owed(ctx context.Context) (map[string]procurement.Owed, error)
	// LiveTraffic lists the confirmed purchases of traffic of a provider that are not closed and
	// whose sessions are active, the newest first.
	LiveTraffic(ctx context.Context, provider string, limit int) ([]LiveOrder, error)
	// Tally counts open orders, and those that are frozen.
	Tally(ctx context.Context) (open, frozen int, err error)
}
