// Package sessions holds the use cases of proxy sessions, from create to their end.
package sessions

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"agentproxy/app/catalogs"
	"agentproxy/app/changes"
	"agentproxy/app/fulfilment"
	"agentproxy/app/ledger"
	"agentproxy/app/ordering"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/exit"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// answerWithin is below idempotency.InFlightTimeout, so that a repeated call finds what
// the first one was answered.
const answerWithin = 55 * time.Second

// Config is what the operator decides about sessions.
type Config struct {
	Limit      int // live sessions of an agent; 0: unlimited
	FundedFrom account.Funding
	// AnswerWithin is how long a create or a renewal waits for a provider; 0: 55 s. What
	// takes longer is finished in the background.
	AnswerWithin time.Duration
	// Measures reports whether there are sources of facts about exits; nil: there are none.
	Measures func() bool
}

// Service is the use cases of proxy sessions: create, use and end.
type Service struct {
	FundedFrom  account.Funding
	cfg         Config
	store       ports.Unit[Repos]
	clock       ports.Clock
	ids         ports.IDs
	secrets     ports.Secrets
	catalog     *catalogs.Catalog
	transitions *Transitions
	driver      *ordering.Driver
	access      *fulfilment.Service
	hub         *changes.Hub
	log         *slog.Logger
}

// New returns the use cases.
func New(cfg Config, base ports.Base, catalog *catalogs.Catalog, transitions *Transitions, driver *ordering.Driver,
	access *fulfilment.Service, hub *changes.Hub) *Service {
	cfg.AnswerWithin = cmp.Or(cfg.AnswerWithin, answerWithin)
	return &Service{FundedFrom: cfg.FundedFrom, cfg: cfg, store: narrow(base.Store), clock: base.Clock, ids: base.IDs,
		secrets: base.Secrets, catalog: catalog, transitions: transitions, driver: driver, access: access, hub: hub,
		log: base.Log}
}

// View is a session at one moment, as its agent may read it.
type View struct {
	ports.SessionRead
	Password string // of the proxy; derived, never stored
	Verdict  health.Verdict
	Workers  health.WorkerCount // of a dynamic session
	Cost     Cost
	// Direct holds the provider's own proxies of a direct session, one per exit. It
	// is nil if the session goes through the gateway, and empty if the provider
	// cannot resolve them at the moment.
	Direct []fulfilment.DirectProxy
	// Measured has what was measured of the addresses of an active static session, nil for what was not. It is empty
	// where nothing is read of it: in answers to calls that change something.
	Measured []*exit.Measured
	AsOf     time.Time
}

// Cost is what a session has cost so far, booked or not.
type Cost struct {
	Charged  domain.Money
	Held     domain.Money
	Refunded domain.Money
	// Forfeited is what the agent gave up of Charged when it ended a static session before its time.
	Forfeited domain.Money
}

// view adds what is not stored.
func (u *Service) view(r ports.SessionRead, now time.Time) View {
	v := View{SessionRead: r}
	v.complete(u.secrets, now, nil)
	return v
}

// complete adds what is not stored. The verdict is that of the session and its workers.
func (v *View) complete(secrets ports.Secrets, now time.Time, workers []ports.WorkerHealth) {
	charged, held, _ := v.SessionRead.Cost()
	v.Password = secrets.ProxyPassword(v.ID, v.PasswordNo)
	v.Verdict = v.Health.Verdict(now, v.Type == session.Static)
	v.Cost = Cost{Charged: charged.Total(), Held: held.Total(), Refunded: v.Money.Refunded.Total()}
	v.AsOf = now
	if len(workers) > 0 {
		states := make([]*health.State, len(workers))
		for i := range workers {
			states[i] = &workers[i].State
		}
		v.Verdict, v.Workers = v.Health.VerdictWith(now, false, states)
	}
	if v.Status.Over() {
		v.Cost.Forfeited = v.Forfeited(v.EndedAt)
	}
}

// workersOf reads the health of the workers of the dynamic ones of sessions.
func workersOf(ctx context.Context, tx Repos, reads ...ports.SessionRead) (map[string][]ports.WorkerHealth, error) {
	var ids []string
	for _, r := range reads {
		if r.Type == session.Dynamic {
			ids = append(ids, r.ID)
		}
	}
	return tx.Workers().HealthOf(ctx, ids)
}

// Read returns one session of an agent, as it was within the last second with the changes of this
// process.
func (u *Service) Read(ctx context.Context, agentID, id string) (View, error) {
	var v View
	var workers map[string][]ports.WorkerHealth
	reads := ports.ReadSet{Agent: agentID, Sessions: []string{id}, Recent: true}
	err := u.store.View(ctx, reads, func(ctx context.Context, tx Repos) (err error) {
		v.SessionRead, err = tx.Sessions().Read(ctx, agentID, id)
		if err == nil && v.Type == session.Dynamic {
			workers, err = tx.Workers().HealthOf(ctx, reads.Sessions)
		}
		return err
	})
	if err != nil {
		return View{}, err
	}
	v.complete(u.secrets, u.clock.Now(), workers[id])
	if err := withMeasured(ctx, u, &v); err != nil {
		return View{}, err
	}
	v.Direct, err = u.access.Direct(ctx, v.Session)
	return v, err
}

// Buyers finds who bought sessions.
type Buyers struct{ *Service }

// BoughtBy returns the id of the key that bought a session of an agent; empty if it is not known.
func (b Buyers) BoughtBy(ctx context.Context, agentID, id string) (keyID string, err error) {
	reads := ports.ReadSet{Agent: agentID, Sessions: []string{id}, Recent: true}
	err = b.store.View(ctx, reads, func(ctx context.Context, tx Repos) error {
		r, err := tx.Sessions().Read(ctx, agentID, id)
		keyID = r.BoughtBy.KeyID
		return err
	})
	return keyID, err
}

// List asks for a page of an agent's sessions.
type List struct {
	AgentID string
	Filter  ports.SessionFilter
	Page    domain.Page
}

// List returns a page of an agent's sessions, newest first.
func (u *Service) List(ctx context.Context, in List) (domain.List[View], error) {
	var page domain.List[ports.SessionRead]
	var workers map[string][]ports.WorkerHealth
	reads := ports.ReadSet{Agent: in.AgentID, List: &ports.SessionPage{Filter: in.Filter, Page: in.Page}}
	err := u.store.View(ctx, reads, func(ctx context.Context, tx Repos) (err error) {
		if page, err = tx.Sessions().List(ctx, in.AgentID, in.Filter, in.Page); err == nil {
			workers, err = workersOf(ctx, tx, page.Items...)
		}
		return err
	})
	out := domain.List[View]{Page: page.Page, Total: page.Total, Next: page.Next, Items: make([]View, len(page.Items))}
	now := u.clock.Now()
	if err != nil {
		return out, err
	}
	for i, r := range page.Items {
		out.Items[i].SessionRead = r
		out.Items[i].complete(u.secrets, now, workers[r.ID])
		if out.Items[i].Direct, err = u.access.Direct(ctx, r.Session); err != nil {
			return out, err
		}
	}
	views := make([]*View, len(out.Items))
	for i := range out.Items {
		views[i] = &out.Items[i]
	}
	return out, withMeasured(ctx, u, views...)
}

// ListByKey counts a list of u by key, as ports.Sessions has it.
func ListByKey(ctx context.Context, u *Service, agentID string, f ports.SessionFilter) (
	list []ports.KeySessions, err error,
) {
	err = u.store.Read(ctx, func(ctx context.Context, tx Repos) error {
		list, err = tx.Sessions().ListByKey(ctx, agentID, f)
		return err
	})
	return list, err
}

// Events returns a page of a session's event log, newest first.
func (u *Service) Events(
	ctx context.Context, agentID, id string, page domain.Page,
) (list domain.List[eventlog.Event], err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		if _, err := tx.Sessions().Get(ctx, agentID, id); err != nil {
			return err
		}
		list, err = tx.Events().Page(ctx, id, page)
		return err
	})
	return list, err
}

// Done is the answer to a call that buys or changes a session.
type Done struct {
	View     View
	Quote    *ledger.Quote // a dry run: nothing else is set
	Outcome  ports.Outcome // of the first call under the Idempotency-Key
	Replayed bool          // the Idempotency-Key was used before
}
