// Package workers keeps the workers of sessions: it makes them with their first use, gives them
// exits, and lists, rotates and removes them for their agent.
package workers

import (
	"context"
	"errors"

	"agentproxy/app/fulfilment"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// Worker returns what words of a user name mean for a session. The first use of a name makes the
// worker; one whose exit's time is over, or whose exit is lost, gets another exit.
func (u *Service) Worker(ctx context.Context, sessionID string, words worker.Parameters) (traffic.WorkerRoute, error) {
	s, found, err := u.read(ctx, sessionID, words.Name)
	if err != nil {
		return traffic.WorkerRoute{}, err
	}
	if err := s.MayRotate(); err != nil && s.Type == session.Dynamic {
		return traffic.WorkerRoute{}, err
	}
	exits, err := u.access.WorkerExits(ctx, s)
	if err != nil {
		return traffic.WorkerRoute{}, err
	}
	if words.Name == "" {
		return u.anywhere(ctx, s, exits, words)
	}
	w := found
	if w.Lost && w.Differs(words) == "" {
		return traffic.WorkerRoute{}, worker.ErrExitLost
	}
	if w.ID == 0 || w.Changeable || w.Due(u.clock.Now()) || w.Differs(words) != "" || !exits.Has(w.Exit) {
		if err := u.learn(ctx, s, exits, session.Location{}); err != nil {
			return traffic.WorkerRoute{}, err
		}
		if w, err = u.useChosen(ctx, s, request{sessionID: sessionID, words: words, exits: exits}); err != nil {
			return traffic.WorkerRoute{}, err
		}
	}
	return routeOf(exits, w)
}

// read returns a session and one of its workers, which has no ID if there is none of the name.
func (u *Service) read(ctx context.Context, sessionID, name string) (s session.Session, w worker.Worker, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
		if s, err = tx.Sessions().Load(ctx, sessionID); err != nil || name == "" {
			return err
		}
		w, err = tx.Workers().Get(ctx, sessionID, name)
		if errors.Is(err, worker.ErrNotFound) {
			w, err = worker.Worker{}, nil
		}
		return err
	})
	return s, w, err
}

// routeOf returns the way of a worker's connections.
func routeOf(exits fulfilment.WorkerExits, w worker.Worker) (traffic.WorkerRoute, error) {
	token := tokenOf(w)
	hop, err := exits.Endpoint(w.Location, token, w.Turn, w.Strict)
	return traffic.WorkerRoute{Worker: w, Upstream: hop, Token: token}, err
}

// tokenOf returns what names the exit of a worker to its seller: the same on every replica.
func tokenOf(w worker.Worker) string {
	if w.Turn >= firstTurn {
		return procurement.Token(w.SessionID+"/t", w.Turn)
	}
	return procurement.WorkerToken(w.SessionID, w.ID, w.Turn)
}

// anywhere returns the route of connections that get a new exit each.
func (u *Service) anywhere(
	ctx context.Context, s session.Session, exits fulfilment.WorkerExits, words worker.Parameters,
) (traffic.WorkerRoute, error) {
	l, err := u.place(s, words.Country, words.City)
	if err != nil {
		return traffic.WorkerRoute{}, err
	}
	if exits.Local() {
		if err := u.learn(ctx, s, exits, l); err != nil {
			return traffic.WorkerRoute{}, err
		}
		var r traffic.WorkerRoute
		filter := u.Gate.Filter(s.Require, l.Country)
		for _, a := range exits.Exits(l) {
			if filter.Passes(a) {
				r.Exits = append(r.Exits, session.Exit{IP: a})
			}
		}
		if r.Exits == nil && filter != nil {
			return r, filter.Refusal(catalog.ErrOutOfStock)
		}
		return r, nil
	}
	if err := refusesRule(s, exits); err != nil {
		return traffic.WorkerRoute{}, err
	}
	fresh := func(n uint64) (procurement.Endpoint, string, error) {
		token := procurement.FreshToken(s.ID, n)
		e, err := exits.Endpoint(l, token, int(n%(1<<31)), false)
		if err != nil {
			return procurement.Endpoint{}, "", err
		}
		return *e, token, nil
	}
	_, _, err = fresh(0)
	return traffic.WorkerRoute{Fresh: fresh}, err
}

// ReportLost handles the failure of a connection from the exit of a worker: because its seller reports
// that the exit is gone, or perhaps because this host has no such address. If the exit is gone, the
// worker gets another one, or, if it is strict, worker.ErrExitLost is returned. A worker that moved
// meanwhile is left alone.
func (u *Service) ReportLost(ctx context.Context, lost worker.Worker) error {
	s, w, err := u.read(ctx, lost.SessionID, lost.Name)
	if err != nil || w.ID != lost.ID || w.Turn != lost.Turn {
		return err
	}
	exits, err := u.access.WorkerExits(ctx, s)
	if err != nil || exits.Local() && exits.Binds(w.Exit) {
		return err
	}
	_, err = u.useChosen(ctx, s, request{sessionID: w.SessionID, words: worker.Parameters{Name: w.Name}, exits: exits,
		gone: &lost})
	return err
}

// Removed returns those of the ids that no worker of a session has any more.
func (u *Service) Removed(ctx context.Context, sessionID string, ids []int64) (gone []int64, err error) {
	err = u.store.Read(ctx, func(ctx context.Context, tx Repos) error {
		known, err := tx.Workers().Bytes(ctx, ids)
		for _, id := range ids {
			if _, ok := known[id]; !ok && err == nil {
				gone = append(gone, id)
			}
		}
		return err
	})
	return gone, err
}

// inBody returns the refusal of a user name as the refusal of a call of the API.
func inBody(err error) error {
	if e, ok := errors.AsType[*domain.Error](err); ok && errors.Is(e, worker.ErrParameter) {
		return domain.ErrInvalid.Msgf("%s", e.Message)
	}
	return err
}

// isRefusal reports whether an error is one that a caller can act on.
func isRefusal(err error) bool {
	e, ok := errors.AsType[*domain.Error](err)
	_, lacks := errors.AsType[unprobed](err)
	return ok && e.Kind != domain.Unavailable && e.Kind != domain.Internal || errors.Is(err, worker.ErrExitLost) || lacks
}
