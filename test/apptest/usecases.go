package apptest

import (
	"log/slog"

	"agentproxy/app/catalogs"
	"agentproxy/app/changes"
	"agentproxy/app/fulfilment"
	"agentproxy/app/maintenance"
	"agentproxy/app/metering"
	"agentproxy/app/ordering"
	"agentproxy/app/policies"
	"agentproxy/app/replacements"
	"agentproxy/app/sessions"
	"agentproxy/app/throttle"
	"agentproxy/app/workers"
	"agentproxy/domain/account"
	"agentproxy/ports"
)

// UseCases are those that depend on the catalogue: what one process of the service has of
// sessions and of the orders behind them.
type UseCases struct {
	Transitions  *sessions.Transitions
	Fulfilment   *fulfilment.Service
	Driver       *ordering.Driver
	Desk         *ordering.Desk
	Callbacks    *ordering.Callbacks
	Sessions     *sessions.Service
	Traffic      *metering.Service
	Policies     *policies.Service
	Replacements *replacements.Service
	Workers      *workers.Service
	Tasks        *maintenance.Tasks
}

// Dependencies are what UseCases are created from.
type Dependencies struct {
	Store        ports.Store
	Clock        ports.Clock
	IDs          ports.IDs
	Secrets      ports.Secrets
	Catalog      *catalogs.Catalog
	Hub          *changes.Hub
	Limits       *throttle.Limits
	SessionLimit int // live sessions an agent; 0: no limit
	FundedFrom   account.Funding
	Calls        ports.CallCounter // may be nil
	Log          *slog.Logger
}

// NewUseCases creates use cases that share a store.
func NewUseCases(d Dependencies) (u UseCases) {
	u.Fulfilment = fulfilment.New(d.Store, d.Secrets, d.Catalog, d.Log)
	u.Transitions = sessions.NewTransitions(d.IDs, d.Catalog, u.Fulfilment)
	base := ports.Base{Store: d.Store, Clock: d.Clock, IDs: d.IDs, Secrets: d.Secrets, Log: d.Log}
	u.Driver = ordering.NewDriver(base, d.Catalog, d.Hub, u.Transitions, u.Fulfilment, d.FundedFrom, d.Calls)
	u.Desk = ordering.NewDesk(d.Store, u.Driver)
	u.Callbacks = ordering.NewCallbacks(d.Store, d.Clock, d.Catalog, u.Driver)
	u.Sessions = sessions.New(sessions.Config{Limit: d.SessionLimit, FundedFrom: d.FundedFrom, Measures: func() bool { return true }}, base, d.Catalog,
		u.Transitions, u.Driver, u.Fulfilment, d.Hub)
	u.Traffic = metering.New(base, u.Sessions, u.Transitions, u.Fulfilment, d.Hub)
	u.Policies = policies.New(d.Store, d.Hub)
	u.Replacements = replacements.New(base, d.Catalog, u.Sessions, u.Transitions, u.Driver,
		u.Fulfilment, d.Hub)
	u.Workers = workers.New(d.Store, d.Clock, d.IDs, d.Catalog, u.Fulfilment, d.Hub, d.Log)
	u.Tasks = maintenance.New(maintenance.Config{ClientDays: 90, ArchiveDays: 90}, base, u.Transitions, u.Traffic, d.Hub, d.Limits)
	return u
}
