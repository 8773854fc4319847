package workers

import (
	"context"
	"time"

	"agentproxy/app/fulfilment"
	"agentproxy/app/idempotency"
	"agentproxy/app/notify"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/exit"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// Rotate asks for another exit of a worker.
type Rotate struct {
	AgentID, SessionID, Name string
	Reason                   health.RotationReason // empty: manual
	Call                     idempotency.Call
	Require                  *exit.Rule // as Create.Require
}

// Rotate gives a worker another exit. Its next use may change its settings.
func (u *Service) Rotate(ctx context.Context, in Rotate) (v View, replayed bool, err error) {
	if in.Reason == "" {
		in.Reason = health.RotationManual
	}
	if !in.Reason.Valid() {
		return View{}, false, domain.InvalidField("reason", "must be http_403, http_429, captcha, timeout, block, "+
			"scheduled or manual")
	}
	s, exits, err := u.open(ctx, in.AgentID, in.SessionID)
	if err != nil {
		return View{}, false, err
	}
	if replayed, err = u.wasRotated(ctx, s, in); err != nil || replayed {
		if err == nil {
			v, err = u.Get(ctx, in.AgentID, s.ID, in.Name)
		}
		return v, replayed, err
	}
	if in.Require != nil {
		if err := in.Require.Check("require.", u.Gate.Can()); err != nil {
			return View{}, false, err
		}
		s.Require = *in.Require
	}
	if err := u.learn(ctx, s, exits, session.Location{}); err != nil {
		return View{}, false, err
	}
	err = u.withTurns(ctx, s, exits, func(has turns) error {
		v, replayed, err = u.rotate(ctx, in, s, exits, has)
		return err
	})
	if err == nil && !replayed {
		u.hub.SessionChanged(s.ID)
	}
	return v, replayed, err
}

// wasRotated reports whether a call with a rule was made before: what the sources have now decides nothing then.
func (u *Service) wasRotated(ctx context.Context, s session.Session, in Rotate) (found bool, err error) {
	if in.Require == nil || in.Call.Key == "" {
		return false, nil
	}
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
		_, found, err = idempotency.FirstRun(ctx, tx, in.AgentID, in.Call, u.clock.Now())
		return err
	})
	return found, err
}

// rotate is Rotate in a unit of work, with the turn of an exit that was chosen.
func (u *Service) rotate(
	ctx context.Context, in Rotate, s session.Session, exits fulfilment.WorkerExits, has turns,
) (v View, replayed bool, err error) {
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		now := u.clock.Now()
		_, found, err := idempotency.FirstRun(ctx, tx, in.AgentID, in.Call, now)
		if err != nil {
			return err
		}
		if replayed = found; found {
			v, err = u.view(ctx, tx, s.ID, in.Name)
			return err
		}
		if err := tx.Sessions().Lock(ctx, []string{s.ID}); err != nil {
			return err
		}
		set, err := u.workerSet(ctx, tx, s.ID, exits)
		if err != nil {
			return err
		}
		if err := set.require(ctx, in.Require); err != nil {
			return err
		}
		set.turns = has
		if err := set.rotate(ctx, in, now); err != nil {
			return err
		}
		if v, err = u.view(ctx, tx, s.ID, in.Name); err != nil {
			return err
		}
		return idempotency.Store(ctx, tx, in.AgentID, in.Call, s.ID, ports.Completed, now)
	})
	return v, replayed, err
}

// rotate gives a worker another exit, and stores what follows from the exit that it leaves.
func (set *workerSet) rotate(ctx context.Context, in Rotate, now time.Time) error {
	if err := set.session.MayRotate(); err != nil {
		return err
	}
	before, known := set.workers[in.Name]
	if !known {
		return worker.ErrNotFound
	}
	if err := set.chosen(before); err != nil {
		return err
	}
	exit, ok := set.exitFor(before, before.Exit)
	if !ok {
		err := catalog.ErrOutOfStock.Msgf("there is no other exit for this worker")
		return set.filter(before.Location).Refusal(err)
	}
	w := set.move(before, exit)
	w.Changeable = true
	w.Rotations++
	if err := set.put(ctx, before, w); err != nil {
		return err
	}
	states, err := set.tx.Workers().Health(ctx, set.session.ID, w.Name)
	if err != nil {
		return err
	}
	for i := range states {
		states[i].State.Rotate(in.Reason, now)
		if err := set.tx.Workers().PutHealth(ctx, w.ID, states[i].State, worker.Failure{}); err != nil {
			return err
		}
	}
	if err := set.tx.Counters().Add(ctx, set.session.AgentID, ports.Tally{Rotations: 1}); err != nil {
		return err
	}
	if err := set.tx.Workers().Rotated(ctx, set.session.ID); err != nil {
		return err
	}
	err = notify.SessionChanged(ctx, set.tx, set.service.ids, now, webhook.SessionRotated, set.session,
		"reason", string(in.Reason), "worker", w.Name)
	if err != nil {
		return err
	}
	e := set.event(eventlog.Rotated, w, now)
	e.Source, e.Code = eventlog.Agent, string(in.Reason)
	if err := set.tx.Events().Append(ctx, set.session.ID, []eventlog.Event{e}); err != nil {
		return err
	}
	return set.tx.Workers().Changed(ctx, set.session.ID)
}
