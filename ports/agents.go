package ports

import (
	"context"
	"net/netip"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
)

// Agents keeps accounts.
type Agents interface {
	Insert(ctx context.Context, a account.Agent) error
	// Get returns an agent with its referrer, or account.ErrNotFound.
	Get(ctx context.Context, id string) (account.Agent, error)
	// Peek is like Get but never locks the agent: for units that hold locks which follow the agent's in the
	// order of locks. What it returns may change before the unit ends.
	Peek(ctx context.Context, id string) (account.Agent, error)
	// Put writes everything but the id, the referrer, the origin and the creation,
	// and notes a change of the agent.
	Put(ctx context.Context, a account.Agent) error
	// List returns the agents that match a filter, newest first.
	List(ctx context.Context, f AgentFilter, page domain.Page) (domain.List[account.Agent], error)
	// ForgetOrigins clears the origins of up to limit agents that registered before the time, and
	// returns of how many.
	ForgetOrigins(ctx context.Context, before time.Time, limit int) (int, error)
	// Unused lists up to limit active agents that registered themselves from a time until before another, and never
	// called, bought, were paid for or met an operator. Nothing refers to them.
	Unused(ctx context.Context, from, to time.Time, limit int) ([]string, error)
	// RemoveUnused removes up to limit agents that were disabled for a reason before a time and are unused still,
	// notes a change of each, and returns their ids.
	RemoveUnused(ctx context.Context, disabledFor string, before time.Time, limit int) ([]string, error)
}

// AgentFilter narrows a list of agents; empty fields do not.
type AgentFilter struct {
	Search         string // an id, or a part of the name or of the email address in any case
	Referrer       string // the code or the name of the referring agent
	Status         account.Status
	RegisteredFrom netip.Prefix // that the origin's address is of; invalid: any
	Order          AgentOrder   // empty: newest first
}

// AgentOrder is in which order agents are listed. Equal ones are listed newest first.
type AgentOrder string

// The orders of agents, each with the most first.
const (
	ByBalance   AgentOrder = "balance"
	ByCharged   AgentOrder = "charged" // less what was refunded
	ByRecharged AgentOrder = "recharged"
	ByLive      AgentOrder = "live" // sessions
)

// AgentOrders lists the orders but for the usual one.
var AgentOrders = []AgentOrder{ByBalance, ByCharged, ByRecharged, ByLive}
