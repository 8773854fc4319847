package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

// Recharges keeps the orders of recharges.
type Recharges interface {
	InsertOrder(ctx context.Context, o recharge.Order) error
	// Order returns an order of the agent, or recharge.ErrNotFound.
	Order(ctx context.Context, agentID, id string) (recharge.Order, error)
	// LoadOrder is like Order for the operator, for an order of any agent.
	LoadOrder(ctx context.Context, id string) (recharge.Order, error)
	// PutOrder writes status, what was received and when it was paid.
	PutOrder(ctx context.Context, o recharge.Order) error
	// Orders lists orders, newest first; an empty agent id or status lists all.
	Orders(ctx context.Context, agentID string, of recharge.Status, page domain.Page) (domain.List[recharge.Order], error)
	// OpenOrders counts the agent's open orders on a network.
	OpenOrders(ctx context.Context, network, agentID string) (int, error)
	// Payable lists the agent's orders on a network that are open, or expired
	// with a window that closed at the time or later, oldest first.
	Payable(ctx context.Context, network, agentID string, closed time.Time) ([]recharge.Order, error)
	// Overdue lists agents that have an open order whose window closed before the
	// time.
	Overdue(ctx context.Context, network string, before time.Time, limit int) ([]string, error)
}
