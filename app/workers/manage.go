package workers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"agentproxy/app/fulfilment"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// Create asks for workers before they are used.
type Create struct {
	AgentID, SessionID string
	Names              []string
	Country, City      string // empty: as the session was bought
	worker.Settings           // without Location
	// Require, if not nil, is the rule of the session from now on; the zero rule ends the one that it had.
	Require *exit.Rule
}

// issues lists what is wrong with a call, whatever the session.
func (in Create) issues() (issues []domain.FieldIssue) {
	seen := map[string]bool{}
	for i, name := range in.Names {
		if !worker.IsName(name) || seen[name] {
			issues = append(issues, domain.FieldIssue{Field: fmt.Sprintf("names[%d]", i),
				Issue: "must be 1 to 32 letters, digits and _, and no other name of the call"})
		}
		seen[name] = true
	}
	if n := len(in.Names); n < 1 || n > worker.MaxPerSession {
		issues = append(issues, domain.FieldIssue{Field: "names", Issue: "must have 1 to 1000 names"})
	}
	if in.TTL != 0 && (in.TTL < worker.MinTTL || in.TTL > worker.MaxTTL) {
		issues = append(issues, domain.FieldIssue{Field: "ttl_seconds", Issue: "must be 10 to 86400"})
	}
	if in.MaxBytes < 0 {
		issues = append(issues, domain.FieldIssue{Field: "max_bytes", Issue: "must be 1 or more"})
	}
	if in.City != "" && in.Country == "" {
		issues = append(issues, domain.FieldIssue{Field: "country", Issue: "is required with city"})
	}
	return issues
}

// notSold is what is wrong with a place.
const notSold = "is not sold with the product of this session, or not what it was bought for"

// Create makes or reads workers, in the order of the names, and reports whether one is new. If one of
// them cannot be made, none is.
func (u *Service) Create(ctx context.Context, in Create) (list []View, made bool, err error) {
	if issues := in.issues(); issues != nil {
		return nil, false, domain.InvalidFields(issues...)
	}
	s, exits, err := u.open(ctx, in.AgentID, in.SessionID)
	if err != nil {
		return nil, false, err
	}
	if _, err := u.place(s, in.Country, ""); err != nil {
		return nil, false, domain.InvalidField("country", notSold)
	}
	if in.Location, err = u.place(s, in.Country, in.City); err != nil {
		return nil, false, domain.InvalidField("city", notSold)
	}
	if in.Unique && !exits.Local() {
		return nil, false, domain.InvalidField("unique_exits",
			"cannot be kept: the seller of this session does not report its exits")
	}
	if in.Require != nil {
		if err := in.Require.Check("require.", u.Gate.Can()); err != nil {
			return nil, false, err
		}
		s.Require = *in.Require
	}
	if err := u.learn(ctx, s, exits, in.Location); err != nil {
		return nil, false, err
	}
	err = u.withTurns(ctx, s, exits, func(has turns) error {
		list, made, err = u.create(ctx, in, s, exits, has)
		return err
	})
	return list, made, err
}

// create is Create in a unit of work, with the turns of exits that were chosen for new workers.
func (u *Service) create(
	ctx context.Context, in Create, s session.Session, exits fulfilment.WorkerExits, has turns,
) (list []View, made bool, err error) {
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		list, made = list[:0], false
		if err := tx.Sessions().Lock(ctx, []string{s.ID}); err != nil {
			return err
		}
		set, err := u.workerSet(ctx, tx, s.ID, exits)
		if err != nil {
			return err
		}
		if err := set.session.MayRotate(); err != nil {
			return err
		}
		if err := set.require(ctx, in.Require); err != nil {
			return err
		}
		if err := set.checkRoom(in); err != nil {
			return err
		}
		set.turns = has
		lacks := unprobed{rule: set.session.Require}
		for _, name := range in.Names {
			w, known := set.workers[name]
			if !known {
				w, err = set.add(ctx, name, in.Settings)
				if one, is := errors.AsType[unprobed](err); is {
					lacks.needs = append(lacks.needs, one.needs...)
					continue
				}
				if err != nil {
					return err
				}
				made = true
			}
			list = append(list, View{Worker: w})
		}
		if lacks.needs != nil {
			return lacks
		}
		return u.addKept(ctx, tx, s.ID, list)
	})
	return list, made, err
}

// checkRoom checks that workers may be made, and that those there are are those that are asked for.
func (set *workerSet) checkRoom(in Create) error {
	missing := 0
	for _, name := range in.Names {
		w, known := set.workers[name]
		if !known {
			missing++
			continue
		}
		asked := worker.Parameters{Country: strings.ToUpper(in.Country), City: in.City, TTL: in.TTL, Strict: in.Strict}
		what := w.Differs(asked)
		switch {
		case in.Unique && !w.Unique:
			what = "unique_exits"
		case in.MaxBytes != 0 && in.MaxBytes != w.MaxBytes:
			what = "max_bytes"
		}
		if what != "" {
			return worker.ErrDiffers.Msgf("the worker %s has another %s; rotate or remove it first", name, what)
		}
	}
	if len(set.workers)+missing > worker.MaxPerSession {
		return worker.ErrLimit
	}
	if !in.Unique {
		return nil
	}
	free := 0
	for _, a := range set.exits.Exits(in.Location) {
		if set.unique[a] == 0 && set.filter(in.Location).Passes(a) && set.present(session.Exit{IP: a}) {
			free++
		}
	}
	if missing > free {
		err := catalog.ErrOutOfStock.Msgf("there are not as many exits in this place; ask for fewer workers, or without " +
			"unique_exits")
		return set.filter(in.Location).Refusal(err.With("available", free+len(in.Names)-missing))
	}
	return nil
}

// open returns an active session of an agent, and where its workers get their exits.
func (u *Service) open(
	ctx context.Context, agentID, id string,
) (s session.Session, set fulfilment.WorkerExits, err error) {
	err = u.store.Read(ctx, func(ctx context.Context, tx Repos) (err error) {
		s, err = tx.Sessions().Get(ctx, agentID, id)
		return err
	})
	if err == nil && s.Type == session.Dynamic {
		err = s.MayRotate()
	}
	if err != nil {
		return s, set, err
	}
	set, err = u.access.WorkerExits(ctx, s)
	return s, set, inBody(err)
}

// View is a worker as its agent may read it.
type View struct {
	worker.Worker
	Verdict  health.Verdict
	Open     int64          // connections, on all replicas
	Measured *exit.Measured // of its exit; nil: nothing
}

// healthByName is for how many workers of a session the health of each is read instead of that of all: a page.
const healthByName = 100

// addKept fills in what is kept beside workers.
func (u *Service) addKept(ctx context.Context, tx Repos, sessionID string, list []View) error {
	if len(list) == 0 {
		return nil
	}
	var names []string // none: of all
	if len(list) <= healthByName {
		for _, v := range list {
			names = append(names, v.Name)
		}
	}
	states, err := tx.Workers().Health(ctx, sessionID, names...)
	if err != nil {
		return err
	}
	metered, err := tx.Traffic().Metered(ctx, []string{sessionID})
	if err != nil {
		return err
	}
	open := map[int64]int64{}
	if m := metered[sessionID]; m != nil {
		for _, l := range m.Leases {
			for _, w := range l.Workers {
				open[w.ID] += w.Open
			}
		}
	}
	measured, err := tx.ExitMeasures().Of(ctx, []string{sessionID})
	if err != nil {
		return err
	}
	exits := make(map[string]exit.Record, len(measured))
	for _, r := range measured {
		exits[r.Worker] = r
	}
	now, verdicts := u.clock.Now(), make(map[int64]health.Verdict, len(states))
	for i := range states {
		verdicts[states[i].ID] = states[i].State.Verdict(now, false)
	}
	for i := range list {
		v, known := verdicts[list[i].ID]
		if !known { // made by this unit
			var fresh health.State
			v = fresh.Verdict(now, false)
		}
		list[i].Verdict, list[i].Open = v, open[list[i].ID]
		w := list[i].Worker
		list[i].Measured = exits[w.Name].Known(exit.Identity(w.ID, w.Turn, w.Exit.IP))
	}
	return nil
}

// List returns a page of the workers of a session by name; of one status, if it is not empty.
func (u *Service) List(
	ctx context.Context, agentID, sessionID string, status worker.Status, page domain.Page,
) (list domain.List[View], err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		if _, err := tx.Sessions().Get(ctx, agentID, sessionID); err != nil {
			return err
		}
		found, err := tx.Workers().Page(ctx, sessionID, status, page)
		if err != nil {
			return err
		}
		list = domain.List[View]{Page: found.Page, Total: found.Total}
		for _, w := range found.Items {
			list.Items = append(list.Items, View{Worker: w})
		}
		return u.addKept(ctx, tx, sessionID, list.Items)
	})
	return list, err
}

// Get returns a worker of a session of an agent.
func (u *Service) Get(ctx context.Context, agentID, sessionID, name string) (v View, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		if _, err := tx.Sessions().Get(ctx, agentID, sessionID); err != nil {
			return err
		}
		v, err = u.view(ctx, tx, sessionID, name)
		return err
	})
	return v, err
}

func (u *Service) view(ctx context.Context, tx Repos, sessionID, name string) (View, error) {
	w, err := tx.Workers().Get(ctx, sessionID, name)
	if err != nil {
		return View{}, err
	}
	list := []View{{Worker: w}}
	err = u.addKept(ctx, tx, sessionID, list)
	return list[0], err
}

// learn measures the exits of a place that a session with a rule may use. It is called before the unit that chooses.
func (u *Service) learn(
	ctx context.Context, s session.Session, exits fulfilment.WorkerExits, l session.Location,
) error {
	if s.Require.Empty() {
		return nil
	}
	if !exits.Local() {
		return nil // each is probed when it is asked for
	}
	return u.Gate.Learn(ctx, s.Require, exits.Pool(), session.Dynamic, l)
}

// Remove removes a worker: its connections are cut, and its exit is free.
func (u *Service) Remove(ctx context.Context, agentID, sessionID, name string) error {
	err := u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		if err := tx.Sessions().Lock(ctx, []string{sessionID}); err != nil {
			return err
		}
		if _, err := tx.Sessions().Get(ctx, agentID, sessionID); err != nil {
			return err
		}
		w, err := tx.Workers().Get(ctx, sessionID, name)
		if err != nil {
			return err
		}
		if err := tx.Workers().Delete(ctx, w.ID); err != nil {
			return err
		}
		return tx.Workers().Changed(ctx, sessionID)
	})
	if err == nil {
		u.hub.SessionChanged(sessionID)
	}
	return err
}
