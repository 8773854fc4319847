package sessions

import (
	"context"
	"errors"
	"net/netip"

	"agentproxy/app/notify"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// errNoExit reports that a session has no such address any more.
var errNoExit = errors.New("the session has no such address")

// present names the exit that a session, an address of it or a worker has now. It is worker.ErrNotFound for a worker
// that is not there.
func present(ctx context.Context, tx Repos, s session.Session, ref exit.Ref) (string, error) {
	if ref.Worker != "" {
		w, err := tx.Workers().Get(ctx, s.ID, ref.Worker)
		return exit.Identity(w.ID, w.Turn, w.Exit.IP), err
	}
	return identity(s, ref.Index)
}

// identity names the exit of a session, or an address of it.
func identity(s session.Session, index int) (string, error) {
	var sold netip.Addr
	if index < len(s.Exits) {
		if s.Exits[index].Ended {
			return "", errNoExit
		}
		sold = s.Exits[index].IP
	} else if index > 0 || s.Type == session.Static {
		return "", errNoExit
	}
	return exit.Identity(0, s.Rotation.Count, sold), nil
}

// presentNow is like present, and has no name for a worker that the probe makes.
func (u *Checks) presentNow(ctx context.Context, s session.Session, ref exit.Ref) (of string, err error) {
	if ref.Worker == "" {
		return identity(s, ref.Index)
	}
	err = u.sessions.store.Read(ctx, func(ctx context.Context, tx Repos) error {
		of, err = present(ctx, tx, s, ref)
		return err
	})
	if errors.Is(err, worker.ErrNotFound) {
		return "", nil
	}
	return of, err
}

// keep stores a measurement, unless the exit was another one when the probe began: then it is not known which of them
// was seen. If the place is not the one sold, that is listed and sent, once an exit.
func (u *Checks) keep(ctx context.Context, ref exit.Ref, of string, m exit.Measured) error {
	err := u.sessions.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		if err := tx.Sessions().Lock(ctx, []string{ref.SessionID}); err != nil {
			return err
		}
		s, err := tx.Sessions().Get(ctx, ref.AgentID, ref.SessionID)
		if err != nil || s.Status != session.Active {
			return err
		}
		now, err := present(ctx, tx, s, ref)
		if err != nil || of != "" && of != now {
			return err
		}
		r, _, err := tx.ExitMeasures().Get(ctx, ref)
		if err != nil {
			return err
		}
		r, tell := r.Take(now, m)
		r.AgentID = ref.AgentID
		if err := tx.ExitMeasures().Put(ctx, r); err != nil || !tell {
			return err
		}
		return u.listDiffering(ctx, tx, r)
	})
	if errors.Is(err, session.ErrNotFound) || errors.Is(err, worker.ErrNotFound) || errors.Is(err, errNoExit) {
		return nil // it went meanwhile
	}
	return err
}

// listDiffering lists that the place of an exit is not the one sold, and notifies the agent.
func (u *Checks) listDiffering(ctx context.Context, tx Repos, r exit.Record) error {
	data := map[string]string{"session_id": r.SessionID, "exit_ip": r.IP.String(), "country": r.Country}
	message := "sources have different countries, the first " + r.Country
	if r.Declared != "" {
		data["declared_country"] = r.Declared
		if r.Declared != r.Country {
			message = "measured in " + r.Country + ", sold as " + r.Declared
		}
	}
	if r.Worker != "" {
		data["worker"] = r.Worker
	}
	_, err := notify.Enqueue(ctx, tx, u.sessions.ids, r.At,
		notify.Notification{AgentID: r.AgentID, Of: webhook.SessionExitDiffers, Data: data})
	if err != nil {
		return err
	}
	return tx.Events().Append(ctx, r.SessionID, []eventlog.Event{{ID: u.sessions.ids.New(eventlog.IDPrefix), At: r.At,
		Source: eventlog.Service, Type: eventlog.ExitDiffers, ExitIP: r.IP.String(), Worker: r.Worker, Message: message,
		LatencyMS: -1}})
}

// MeasuredAt returns what was measured of an address of a static session, nil if nothing was, and how many checks of
// it failed one after the other.
func MeasuredAt(ctx context.Context, tx Repos, s session.Session, index int) (*exit.Measured, int, error) {
	of, err := identity(s, index)
	if err != nil {
		return nil, 0, err
	}
	r, _, err := tx.ExitMeasures().Get(ctx, exit.Ref{AgentID: s.AgentID, SessionID: s.ID, Index: index})
	return r.Known(of), r.FailuresOf(of), err
}

// withMeasured adds what was measured of the addresses of static sessions that are active. It reads nothing where
// there are no sources of facts.
func withMeasured(ctx context.Context, u *Service, views ...*View) error {
	if u.cfg.Measures == nil || !u.cfg.Measures() {
		return nil
	}
	var ids []string
	of := map[string]*View{}
	for _, v := range views {
		if v.Type == session.Static && v.Status == session.Active {
			ids, of[v.ID] = append(ids, v.ID), v
			v.Measured = make([]*exit.Measured, len(v.Exits))
		}
	}
	if ids == nil {
		return nil
	}
	var list []exit.Record
	err := u.store.Read(ctx, func(ctx context.Context, tx Repos) (err error) {
		list, err = tx.ExitMeasures().Of(ctx, ids)
		return err
	})
	for _, r := range list {
		v := of[r.SessionID]
		if name, err := identity(v.Session, r.Index); err == nil && r.Worker == "" {
			v.Measured[r.Index] = r.Known(name)
		}
	}
	return err
}

var _ ports.Watcher = (*Checks)(nil)
