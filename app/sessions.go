package app

import (
	"context"
	"log/slog"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// SessionConfig is what the operator decides about sessions.
type SessionConfig struct {
	Limit int // live sessions an agent
	// Count is told of each call of a provider; nil: nobody counts.
	Count func(provider, operation string, result procurement.Class)
	Log   *slog.Logger // nil: nothing is logged
}

// Sessions is buying, using and ending proxy sessions.
type Sessions struct {
	cfg     SessionConfig
	store   ports.Store
	clock   ports.Clock
	ids     ports.IDs
	secrets ports.Secrets
	catalog *Catalog
	hub     *Hub
	log     *slog.Logger
}

// NewSessions wires the use cases.
func NewSessions(cfg SessionConfig, store ports.Store, clock ports.Clock, ids ports.IDs, secrets ports.Secrets,
	catalog *Catalog, hub *Hub) *Sessions {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Sessions{cfg: cfg, store: store, clock: clock, ids: ids, secrets: secrets, catalog: catalog,
		hub: hub, log: cfg.Log}
}

// SessionView is a session as its owner sees it at one moment.
type SessionView struct {
	ports.SessionRead
	Password string // of the proxy; derived, never stored
	Verdict  health.Verdict
	Cost     Cost
	// Direct are the provider's own proxies of a session that does not go through
	// the gateway, one for each exit; nil: it does; empty: nobody can tell them now.
	Direct []DirectProxy
	AsOf   time.Time
}

// Cost is what a session has cost so far, whether it is booked yet or not.
type Cost struct {
	Charged  domain.Money
	Held     domain.Money
	Refunded domain.Money
}

// view computes what is not stored.
func (u *Sessions) view(r ports.SessionRead, now time.Time) SessionView {
	due := r.ChargeDue(r.Usage.Used())
	return SessionView{
		SessionRead: r,
		Password:    u.secrets.ProxyPassword(r.ID),
		Verdict:     r.Health.Verdict(now, r.Type == session.Static),
		Cost: Cost{
			Charged:  r.Money.Charged.Total() + due,
			Held:     r.Money.Held.Total() - due,
			Refunded: r.Money.Refunded.Total(),
		},
		AsOf: now,
	}
}

// Read returns one session of an agent.
func (u *Sessions) Read(ctx context.Context, agentID, id string) (SessionView, error) {
	var r ports.SessionRead
	err := u.store.Read(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		r, err = tx.Sessions().Read(ctx, agentID, id)
		return err
	})
	if err != nil {
		return SessionView{}, err
	}
	v := u.view(r, u.clock.Now())
	return v, u.withDirect(ctx, &v)
}

// ListSessions asks for a page of an agent's sessions.
type ListSessions struct {
	AgentID string
	Filter  ports.SessionFilter
	Page    domain.Page
}

// List returns a page of an agent's sessions, newest first.
func (u *Sessions) List(ctx context.Context, in ListSessions) (domain.List[SessionView], error) {
	var reads domain.List[ports.SessionRead]
	err := u.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		reads, err = tx.Sessions().List(ctx, in.AgentID, in.Filter, in.Page)
		return err
	})
	out := domain.List[SessionView]{Page: reads.Page, Total: reads.Total, Items: make([]SessionView, len(reads.Items))}
	now := u.clock.Now()
	if err != nil {
		return out, err
	}
	for i, r := range reads.Items {
		out.Items[i] = u.view(r, now)
		if err := u.withDirect(ctx, &out.Items[i]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// Events returns a page of a session's event feed, newest first.
func (u *Sessions) Events(ctx context.Context, agentID, id string, page domain.Page) (list domain.List[eventlog.Event], err error) {
	err = u.store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Sessions().Get(ctx, agentID, id); err != nil {
			return err
		}
		list, err = tx.Events().Page(ctx, id, page)
		return err
	})
	return list, err
}

// Quote is the answer to a dry run: what a call would cost and leave.
type Quote struct {
	Cost         domain.Money
	BalanceAfter domain.Money
}

func quote(w billing.Wallet, cost domain.Money) *Quote {
	return &Quote{Cost: cost, BalanceAfter: w.Balance() - cost}
}

// Done is the answer to a call that buys or changes a session.
type Done struct {
	View     SessionView
	Quote    *Quote // a dry run: nothing else is set
	Status   int    // the HTTP status of the first answer: 200, 201 or 202
	Replayed bool   // the Idempotency-Key was used before
}
