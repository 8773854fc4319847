package workers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// useAll makes or changes the workers of requests in one unit of work. Should a session make that
// fail, each session has a unit of its own, so that it fails alone.
func (u *Service) useAll(ctx context.Context, requests []request) []result {
	of := map[string][]int{}
	for i, r := range requests {
		of[r.sessionID] = append(of[r.sessionID], i)
	}
	ids, results := slices.Sorted(maps.Keys(of)), make([]result, len(requests))
	err := u.useOf(ctx, ids, of, requests, results)
	if err == nil {
		return results
	}
	apart := len(ids) > 1 && !errors.Is(err, domain.ErrUnavailable) && ctx.Err() == nil
	for _, id := range ids {
		if apart {
			err = u.useOf(ctx, []string{id}, of, requests, results)
		}
		if err != nil {
			for _, i := range of[id] {
				results[i] = result{err: err}
			}
		}
	}
	return results
}

// useOf answers the requests of some sessions in one unit of work.
func (u *Service) useOf(
	ctx context.Context, ids []string, of map[string][]int, requests []request, results []result,
) error {
	return u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		if err := tx.Sessions().Lock(ctx, ids); err != nil {
			return err
		}
		for _, id := range ids {
			set, err := u.workerSet(ctx, tx, id, requests[of[id][0]].exits)
			if err != nil {
				return err
			}
			for _, i := range of[id] {
				w, err := set.use(ports.WithAgent(ctx, set.session.AgentID), requests[i])
				if err != nil && !isRefusal(err) {
					return err
				}
				results[i] = result{w, err}
			}
		}
		return nil
	})
}

// use returns the worker of a name as this use finds it, and stores what changes by it.
func (set *workerSet) use(ctx context.Context, r request) (worker.Worker, error) {
	words := r.words
	set.turns = r.turns
	if err := set.session.MayRotate(); err != nil {
		return worker.Worker{}, err
	}
	w, known := set.workers[words.Name]
	if !known {
		l, err := set.service.place(set.session, words.Country, words.City)
		if err != nil {
			return worker.Worker{}, err
		}
		return set.add(ctx, words.Name, worker.Settings{Location: l, TTL: words.TTL, Strict: words.Strict})
	}
	before := w
	differs := w.Differs(words)
	if differs != "" && !w.Changeable {
		return worker.Worker{}, worker.ErrDiffers.Msgf("the worker %s has another %s; rotate or remove it first, or leave "+
			"the word out", w.Name, differs)
	}
	w.Changeable = false
	if differs != "" {
		if err := set.change(&w, words); err != nil {
			return worker.Worker{}, err
		}
	}
	gone := !set.present(w.Exit) || r.gone != nil && r.gone.ID == w.ID && r.gone.Turn == w.Turn
	switch {
	case gone && w.Strict:
		w.Lost = true
		if before.Lost {
			return worker.Worker{}, worker.ErrExitLost
		}
		if err := set.put(ctx, before, w); err != nil {
			return worker.Worker{}, err
		}
		return worker.Worker{}, set.lost(ctx, before, w)
	case w.Lost && w.Strict:
		return worker.Worker{}, worker.ErrExitLost
	case gone:
		if err := set.chosen(w); err != nil {
			return worker.Worker{}, err
		}
		if exit, ok := set.exitFor(w, session.Exit{}); ok {
			w = set.move(w, exit)
		} else {
			return worker.Worker{}, worker.ErrExitLost.Msgf("the exit of this worker is gone, and its place has no other")
		}
		if err := set.lost(ctx, before, w); err != nil && !isRefusal(err) {
			return worker.Worker{}, err
		}
	case w.Due(set.now) || w.Location != before.Location && !set.placed(w):
		err := set.chosen(w)
		if err != nil && !r.keep {
			return worker.Worker{}, err
		}
		if exit, ok := set.exitFor(w, w.Exit); ok && err == nil {
			w = set.move(w, exit)
		} else {
			w.AssignedAt = set.now // there is no other exit: it keeps the one that it has
		}
	}
	return w, set.put(ctx, before, w)
}

// placed reports whether the exit of a worker is in its place: after a rotation it is not given up for
// a place that it is in. A seller is asked for another one, because a session there may keep the place
// that it began with.
func (set *workerSet) placed(w worker.Worker) bool {
	return set.exits.Local() && slices.Contains(set.exits.Exits(w.Location), w.Exit.IP)
}

// change gives a worker that was rotated the settings that its next use asks for.
func (set *workerSet) change(w *worker.Worker, words worker.Parameters) error {
	if words.Country != "" || words.City != "" {
		l, err := set.service.place(set.session, words.Country, words.City)
		if err != nil {
			return err
		}
		w.Location = l
	}
	if words.TTL != 0 {
		w.TTL = words.TTL
	}
	w.Strict = w.Strict || words.Strict
	return set.checkEndpoint(*w)
}

// lost lists in the event log that the exit of a worker is gone, and notifies every replica. It
// returns worker.ErrExitLost for a worker that gets no other.
func (set *workerSet) lost(ctx context.Context, before, after worker.Worker) error {
	e := set.event(eventlog.ExitLost, after, set.now)
	e.Code = worker.ErrExitLost.Code
	e.ExitIP = exitText(before.Exit)
	e.Message = "the exit " + named(before.Exit, "of this worker") + " is gone"
	if !after.Lost {
		e.Message += "; the worker moved to " + named(after.Exit, "another one")
	}
	if err := set.tx.Events().Append(ctx, set.session.ID, []eventlog.Event{e}); err != nil {
		return err
	}
	if err := set.tx.Workers().Changed(ctx, set.session.ID); err != nil {
		return err
	}
	if after.Lost {
		return worker.ErrExitLost
	}
	return nil
}

func (set *workerSet) event(what string, w worker.Worker, now time.Time) eventlog.Event {
	return eventlog.Event{ID: set.service.ids.New(eventlog.IDPrefix), At: now, Source: eventlog.Service, Type: what,
		LatencyMS: -1, ExitIP: exitText(w.Exit), Worker: w.Name}
}

// named returns the address of an exit, or what it is where the seller does not report the address.
func named(e session.Exit, what string) string {
	if !e.IP.IsValid() {
		return what
	}
	return e.IP.String()
}

// exitText returns the address of an exit; empty if it is not known.
func exitText(e session.Exit) string {
	if !e.IP.IsValid() {
		return ""
	}
	return e.IP.String()
}
