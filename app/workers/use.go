package workers

import (
	"context"
	"maps"
	"slices"
	"time"

	"agentproxy/domain/eventlog"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
)

// useAll makes or changes the workers of requests in one unit of work.
func (u *Service) useAll(ctx context.Context, requests []request) []result {
	var results []result
	err := u.store.Update(ctx, func(ctx context.Context, tx Repos) error {
		results = make([]result, len(requests))
		of := map[string][]int{}
		for i, r := range requests {
			of[r.sessionID] = append(of[r.sessionID], i)
		}
		ids := slices.Sorted(maps.Keys(of))
		if err := tx.Sessions().Lock(ctx, ids); err != nil {
			return err
		}
		for _, id := range ids {
			c, err := u.crew(ctx, tx, id, requests[of[id][0]].crowd)
			if err != nil {
				return err
			}
			for _, i := range of[id] {
				w, err := c.use(ctx, requests[i].words)
				if err != nil && !isRefusal(err) {
					return err
				}
				results[i] = result{w, err}
			}
		}
		return nil
	})
	if err != nil {
		results = make([]result, len(requests))
		for i := range results {
			results[i].err = err
		}
	}
	return results
}

// use returns the worker of a name as this use finds it, and stores what changes by it.
func (c *crew) use(ctx context.Context, words worker.Words) (worker.Worker, error) {
	if err := c.session.MayRotate(); err != nil {
		return worker.Worker{}, err
	}
	w, known := c.workers[words.Name]
	if !known {
		l, err := c.service.place(c.session, words.Country, words.City)
		if err != nil {
			return worker.Worker{}, err
		}
		return c.add(ctx, words.Name, worker.Settings{Location: l, TTL: words.TTL, Strict: words.Strict})
	}
	before := w
	differs := w.Differs(words)
	if differs != "" && !w.Changeable {
		return worker.Worker{}, worker.ErrDiffers.Msgf("the worker %s has another %s; rotate or remove it first, or leave "+
			"the word out", w.Name, differs)
	}
	w.Changeable = false
	if differs != "" {
		if err := c.change(&w, words); err != nil {
			return worker.Worker{}, err
		}
	}
	gone := !c.present(w.Exit)
	switch {
	case gone && w.Strict:
		w.Lost = true
		if before.Lost {
			return worker.Worker{}, worker.ErrExitLost
		}
		if err := c.put(ctx, before, w); err != nil {
			return worker.Worker{}, err
		}
		return worker.Worker{}, c.lost(ctx, before, w)
	case w.Lost && w.Strict:
		return worker.Worker{}, worker.ErrExitLost
	case gone:
		if exit, ok := c.exitFor(w, session.Exit{}); ok {
			w = w.Move(exit, c.now)
		} else {
			return worker.Worker{}, worker.ErrExitLost.Msgf("the exit of this worker is gone, and its place has no other")
		}
		if err := c.lost(ctx, before, w); err != nil && !isRefusal(err) {
			return worker.Worker{}, err
		}
	case w.Due(c.now) || w.Location != before.Location:
		if exit, ok := c.exitFor(w, w.Exit); ok {
			w = w.Move(exit, c.now)
		} else {
			w.AssignedAt = c.now // there is no other exit: it keeps the one that it has
		}
	}
	return w, c.put(ctx, before, w)
}

// change gives a worker that was rotated the settings that its next use asks for.
func (c *crew) change(w *worker.Worker, words worker.Words) error {
	if words.Country != "" || words.City != "" {
		l, err := c.service.place(c.session, words.Country, words.City)
		if err != nil {
			return err
		}
		w.Location = l
	}
	if words.TTL != 0 {
		w.TTL = words.TTL
	}
	w.Strict = w.Strict || words.Strict
	return c.ask(*w)
}

// lost lists in the feed that the exit of a worker is gone. It returns worker.ErrExitLost for a worker
// that gets no other.
func (c *crew) lost(ctx context.Context, before, after worker.Worker) error {
	e := c.event(eventlog.ExitLost, after, c.now)
	e.Code = worker.ErrExitLost.Code
	e.Message = "the exit " + exitText(before.Exit) + " is gone"
	e.ExitIP = exitText(before.Exit)
	if !after.Lost {
		e.Message += "; the worker moved to " + exitText(after.Exit)
	}
	if err := c.tx.Events().Append(ctx, c.session.ID, []eventlog.Event{e}); err != nil {
		return err
	}
	if after.Lost {
		return worker.ErrExitLost
	}
	return nil
}

func (c *crew) event(what string, w worker.Worker, now time.Time) eventlog.Event {
	return eventlog.Event{ID: c.service.ids.New(eventlog.IDPrefix), At: now, Source: eventlog.Service, Type: what,
		LatencyMS: -1, ExitIP: exitText(w.Exit), Worker: w.Name}
}

// exitText returns the address of an exit; empty if it is not known.
func exitText(e session.Exit) string {
	if !e.IP.IsValid() {
		return ""
	}
	return e.IP.String()
}
