package operator

import (
	"cmp"
	"context"
	"slices"

	"agentproxy/app/changes"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/replacement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// Sessions lists, shows and ends the sessions of all agents for the operator.
type Sessions struct {
	store       ports.Unit[repos]
	clock       ports.Clock
	ids         ports.IDs
	transitions *sessions.Transitions
	hub         *changes.Hub
}

// NewSessions returns the use cases.
func NewSessions(store ports.Store, clock ports.Clock, ids ports.IDs, transitions *sessions.Transitions,
	hub *changes.Hub) *Sessions {
	return &Sessions{store: narrow(store), clock: clock, ids: ids, transitions: transitions, hub: hub}
}

// List lists sessions of all agents, the newest first.
func (u *Sessions) List(
	ctx context.Context, f ports.OverviewFilter, page domain.Page,
) (list domain.List[ports.SessionRead], err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		if list, err = listSessions(ctx, tx, f, page); err != nil {
			return err
		}
		return addReported(ctx, tx, list.Items)
	})
	return list, err
}

// listSessions lists the sessions of one agent as the agent does, whose sessions are numbered and counted.
func listSessions(ctx context.Context, tx repos, f ports.OverviewFilter, page domain.Page) (
	list domain.List[ports.SessionRead], err error,
) {
	if f.AgentID == "" || f.Provider != "" {
		return tx.Overview().Sessions(ctx, f, page)
	}
	list, err = tx.Sessions().List(ctx, f.AgentID,
		ports.SessionFilter{Status: f.Status, Type: f.Type, ProductNo: f.ProductNo}, page)
	list.Next = 0 // lists of all agents are paged by number alone
	return list, err
}

// addReported adds to sessions of a snapshot what gateways have reported and is not booked yet. It writes nothing, so
// that a standby shows it too.
func addReported(ctx context.Context, tx repos, list []ports.SessionRead) error {
	if len(list) == 0 {
		return nil
	}
	reports, err := tx.Traffic().Reports(ctx)
	if err != nil {
		return err
	}
	of := map[string][]traffic.Report{}
	for _, r := range reports {
		of[r.SessionID] = append(of[r.SessionID], r)
	}
	for i := range list {
		for _, r := range of[list[i].ID] {
			l, open, err := tx.Traffic().Lease(ctx, r.SessionID, r.Lease)
			if err != nil {
				return err
			}
			if open {
				list[i].Usage = list[i].Usage.With(l, r)
			}
		}
	}
	return nil
}

// Exits counts the exits that agents use, and the addresses that they gave back, by source and country as sold, in
// this order.
func (u *Sessions) Exits(ctx context.Context) (list []exit.Quality, err error) {
	var back []replacement.Count
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		if list, err = tx.ExitMeasures().Quality(ctx); err == nil {
			back, err = tx.Replacements().Counts(ctx)
		}
		return err
	})
	for _, c := range back {
		i, has := slices.BinarySearchFunc(list, c, func(q exit.Quality, c replacement.Count) int {
			return cmp.Or(cmp.Compare(q.Source, c.Source), cmp.Compare(q.Declared, c.Country))
		})
		if !has {
			list = slices.Insert(list, i, exit.Quality{Source: c.Source, Declared: c.Country})
		}
		q := &list[i]
		q.Replaced, q.Ended, q.Fees, q.Refunds = c.Replaced, c.Ended, c.Fees, c.Refunds
	}
	return list, err
}

// Detail is a session with what is kept beside it, and its orders at sellers, the newest first.
type Detail struct {
	ports.SessionRead
	Orders []procurement.Order
	Cost   domain.Money // of the confirmed orders
	// Events are the newest, and Hosts those with the most traffic of the last days, mostShown at most.
	Events  []eventlog.Event
	Hosts   []traffic.Host
	Workers []worker.Worker
}

// mostShown is how many events, and how many hosts, a Detail has.
const mostShown = 50

// Show returns a session of any agent. It returns session.ErrNotFound for an unknown id.
func (u *Sessions) Show(ctx context.Context, id string) (d Detail, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		s, err := tx.Sessions().Load(ctx, id)
		if err != nil {
			return err
		}
		if d.SessionRead, err = tx.Sessions().Read(ctx, s.AgentID, id); err != nil {
			return err
		}
		one := []ports.SessionRead{d.SessionRead}
		if err := addReported(ctx, tx, one); err != nil {
			return err
		}
		d.Usage = one[0].Usage
		if d.Orders, err = tx.Orders().Of(ctx, id); err != nil {
			return err
		}
		if err := u.seen(ctx, tx, &d); err != nil {
			return err
		}
		d.Cost = 0
		for _, o := range d.Orders {
			if o.Status == procurement.Confirmed {
				d.Cost += o.Cost
			}
		}
		return nil
	})
	return d, err
}

// seen reads what happened in a session.
func (u *Sessions) seen(ctx context.Context, tx repos, d *Detail) error {
	events, err := tx.Events().Page(ctx, d.ID, domain.Page{Number: 1, Size: mostShown})
	if err != nil {
		return err
	}
	hosts, err := tx.Peers().Hosts(ctx, d.ID, billing.Day(u.clock.Now()).Add(-traffic.KeepHosts))
	if err != nil {
		return err
	}
	slices.SortStableFunc(hosts, func(a, b traffic.Host) int { return cmp.Compare(b.Bytes, a.Bytes) })
	d.Events, d.Hosts = events.Items, hosts[:min(len(hosts), mostShown)]
	d.Workers, err = tx.Workers().Of(ctx, d.ID)
	slices.SortStableFunc(d.Workers, func(a, b worker.Worker) int { return worker.CompareNames(a.Name, b.Name) })
	return err
}

// End ends a live session. The unused part is given back: traffic that was not used, and the whole
// days that are left. It returns session.ErrOver for one that has ended.
func (u *Sessions) End(ctx context.Context, id string) (s session.Session, err error) {
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		if s, err = tx.Sessions().Load(ctx, id); err != nil {
			return err
		}
		if s.Status.Over() {
			return session.ErrOver.Msgf("the session is %s since %s", s.Status, s.EndedAt.Format("2006-01-02 15:04:05 UTC"))
		}
		s, err = u.transitions.Terminate(ctx, tx, s, session.OperatorRequest, u.clock.Now())
		return err
	})
	if err == nil {
		u.hub.SessionChanged(id)
	}
	return s, err
}
