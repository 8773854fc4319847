package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
)

// Overview reads across all agents, for the operator alone.
type Overview interface {
	// Sessions lists sessions of all agents, newest first.
	Sessions(ctx context.Context, f OverviewFilter, page domain.Page) (domain.List[SessionRead], error)
	// Agents lists agents that match a filter with their money, in the order of the filter.
	Agents(ctx context.Context, f AgentFilter, page domain.Page) (domain.List[AgentMoney], error)
	// Margins sums charges and refunds by when they were booked, and orders at sellers by when they were
	// confirmed, from a time until before another, by a key. Each entry and each order is in one group.
	// What corrections gave is in the group of its day or agent; it has no provider and no product.
	Margins(ctx context.Context, from, to time.Time, by MarginKey) (map[string]billing.Margin, error)
	// Deliveries sums, by the same key, what was delivered in that time without a cost that a seller named:
	// confirmed orders, and the traffic and the charged terms of sessions that have no order, in hours.
	Deliveries(ctx context.Context, from, to time.Time, by MarginKey) ([]Delivery, error)
	// Accounts sums the service's side of the entries that were booked from a time until before another.
	Accounts(ctx context.Context, from, to time.Time) (map[billing.Account]domain.Money, error)
	// Received sums the recharges that were booked in that time by UTC day.
	Received(ctx context.Context, from, to time.Time) (map[time.Time]domain.Money, error)
	// Registered counts the accounts that registered themselves in that time by UTC day: those whose address is
	// known. It is forgotten later.
	Registered(ctx context.Context, from, to time.Time) (map[time.Time]int, error)
	// Providers counts what names each provider.
	Providers(ctx context.Context) (map[string]Named, error)
	// Unbooked sums by agent what sessions used up of what they hold since their last charge: of some agents or,
	// with none given, of all. Charges are booked by the hour.
	Unbooked(ctx context.Context, agentIDs ...string) (map[string]domain.Money, error)
	// Live counts live sessions by status.
	Live(ctx context.Context) (map[session.Status]int, error)
}

// Named is how much names a provider.
type Named struct {
	Sessions int // that live
	Orders   int // whose outcome is open
	Claims   int // of proxies of a list
}

// OverviewFilter narrows a list of sessions of all agents; empty fields do not.
type OverviewFilter struct {
	AgentID   string
	Status    session.Status
	Type      session.Type
	ProductNo string
	Provider  string
}

// AgentMoney is an agent, its wallet, and what of its hold is used up and not charged yet.
type AgentMoney struct {
	account.Agent
	Wallet   billing.Wallet
	Unbooked domain.Money
	Seen     time.Time // the last use of one of its keys; zero: none, or long ago
}

// MarginKey is what margins are grouped by.
type MarginKey string

// The keys of margins. A day is its UTC date as YYYY-MM-DD.
const (
	ByProvider MarginKey = "provider"
	ByProduct  MarginKey = "product"
	ByAgent    MarginKey = "agent"
	ByDay      MarginKey = "day"
)

// Delivery is some deliveries of one product by one provider whose cost no seller named.
type Delivery struct {
	Key       string // as of Margins
	Provider  string
	ProductNo string
	Type      session.Type
	Ordered   bool // by orders; else in process
	IPs, Days int  // of each; static
	// Charged is the price of each term that has no order.
	Charged domain.Money
	Bytes   int64 // of all together; dynamic
	Count   int   // orders, terms, or sessions with traffic
}
