package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// The kinds of jobs.
const (
	ProvisionJob = "provision" // deliver a session that is creating
	ReleaseJob   = "release"   // give up what a provider delivered for a session that ended
)

// deliver asks a provider that does IO, between the unit that held the money
// and the one that decides. Whatever went wrong, the session says what is known:
// one that is still creating is asked for again by the job stored with it.
func (u *Sessions) deliver(ctx context.Context, p purchase, held Done) (Done, error) {
	id := held.View.ID
	unknown := u.provision(ctx, id)
	v, err := u.Read(context.WithoutCancel(ctx), p.AgentID, id)
	if err != nil {
		return Done{}, errors.Join(err, unknown)
	}
	switch v.Status {
	case session.Creating:
		return Done{View: v, Status: 202}, u.answered(ctx, p, id)
	case session.Failed:
		return Done{}, failureError(v.Failure).With("session_id", id)
	}
	return Done{View: v, Status: 201}, nil
}

// answered notes that the first call under a key was answered while its session
// was creating: a replay need not wait any more, and gets the same status.
func (u *Sessions) answered(ctx context.Context, p purchase, id string) error {
	if p.Call.Key == "" {
		return nil
	}
	return u.store.Update(context.WithoutCancel(ctx), func(ctx context.Context, tx ports.Tx) error {
		c, found, err := tx.Idempotency().Find(ctx, p.AgentID, p.Call.Path, p.Call.Key, time.Time{})
		if err != nil || !found || c.Resource != id {
			return err
		}
		c.Status = 202
		return tx.Idempotency().Put(ctx, c)
	})
}

// failureError is the refusal that a stored failure stands for.
func failureError(f session.Failure) *domain.Error {
	for _, e := range []*domain.Error{ports.ErrTimeout, catalog.ErrOutOfStock} {
		if e.Code == f.Code {
			return e
		}
	}
	return ports.ErrProvider
}

// Provision is the job of a session that is creating. It may run twice, and
// while the session ends: it reads the state and decides again.
func (u *Sessions) Provision(ctx context.Context, id string) error {
	if err := u.provision(ctx, id); err != nil {
		return fmt.Errorf("provision %s: %w", id, err)
	}
	return nil
}

// provision delivers a session that is creating, or fails it and gives the
// money back. An error says that neither is known yet.
func (u *Sessions) provision(ctx context.Context, id string) error {
	var s session.Session
	err := u.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		s, err = tx.Sessions().Load(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	provider, known := u.catalog.provider(s.Provider)
	if s.Status != session.Creating {
		if known && !provider.Local() && s.Status.Over() && s.ActivatedAt.IsZero() {
			return provider.Release(ctx, id)
		}
		return nil
	}
	product, _, err := u.catalog.product(s.ProductNo)
	if err != nil || !known {
		return u.fail(ctx, id, ports.ErrProvider.Msgf("the product is no longer sold"))
	}
	var exits []session.Exit
	if !provider.Local() {
		exits, err = provider.Provision(ctx, orderFor(s, product))
	}
	if err == nil {
		err = u.deliverTo(ctx, id, product, provider, exits)
	}
	if refused(err) {
		return u.fail(ctx, id, err)
	}
	return err
}

// refused reports whether a provider says that provably nothing was bought.
func refused(err error) bool {
	return errors.Is(err, ports.ErrProvider) || errors.Is(err, ports.ErrTimeout) || errors.Is(err, catalog.ErrOutOfStock)
}

// deliverTo is the unit that activates, also when the caller has left: what was
// delivered is worth money. A session that ended meanwhile does not get the
// exits: they go back.
func (u *Sessions) deliverTo(ctx context.Context, id string, product catalog.Product, provider ports.OldProvider, exits []session.Exit) error {
	err := u.store.Update(context.WithoutCancel(ctx), func(ctx context.Context, tx ports.Tx) error {
		now := u.clock.Now()
		s, err := tx.Sessions().Load(ctx, id)
		if err != nil {
			return err
		}
		if s.Status != session.Creating {
			if !s.Status.Over() || provider.Local() {
				return nil
			}
			return tx.Jobs().Insert(ctx, ports.Job{Kind: ReleaseJob, SessionID: id}, now)
		}
		b := books{tx, u.ids, now}
		if provider.Local() {
			s, err = u.activateLocal(ctx, b, s, product, provider)
		} else {
			s, err = u.activate(ctx, b, s, exits)
		}
		if err != nil {
			return err
		}
		return tx.Sessions().Put(ctx, s)
	})
	if err == nil {
		u.hub.SessionChanged(id)
	}
	return err
}

// fail ends a session whose provisioning was refused and gives everything back.
// Its key goes too, so that the agent may try the same call again.
func (u *Sessions) fail(ctx context.Context, id string, cause error) error {
	failure := session.Failure{Code: ports.ErrProvider.Code, Message: ports.ErrProvider.Message}
	if e, ok := errors.AsType[*domain.Error](cause); ok {
		failure = session.Failure{Code: e.Code, Message: e.Message}
	}
	err := u.store.Update(context.WithoutCancel(ctx), func(ctx context.Context, tx ports.Tx) error {
		now := u.clock.Now()
		s, err := tx.Sessions().Load(ctx, id)
		if err != nil || s.Status != session.Creating {
			return err
		}
		if s, err = s.Fail(failure, now); err != nil {
			return err
		}
		if err := tx.Idempotency().DropFor(ctx, s.AgentID, id); err != nil {
			return err
		}
		_, err = u.end(ctx, tx, s, "failed", failure.Code, now)
		return err
	})
	if err == nil {
		u.hub.SessionChanged(id)
	}
	return err
}

// GiveUp ends a session whose job has failed every time, and gives everything
// back, where provably nothing was bought: the provider does no IO, or is not
// there any more. With any other the outcome is unknown: the session keeps its
// hold, as the agent was told, until the provider answers; Recover asks again.
func (u *Sessions) GiveUp(ctx context.Context, id string) error {
	var s session.Session
	err := u.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		s, err = tx.Sessions().Load(ctx, id)
		return err
	})
	if err != nil || s.Status != session.Creating {
		return err
	}
	if provider, known := u.catalog.provider(s.Provider); known && !provider.Local() {
		return nil
	}
	return u.fail(ctx, id, ports.ErrProvider.Msgf("the session could not be delivered; try again"))
}

// Release is the job that gives up what a provider delivered for a session that
// ended.
func (u *Sessions) Release(ctx context.Context, id string) error {
	var s session.Session
	err := u.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		s, err = tx.Sessions().Load(ctx, id)
		return err
	})
	if err != nil || !s.Status.Over() {
		return err
	}
	provider, ok := u.catalog.provider(s.Provider)
	if !ok {
		return fmt.Errorf("release %s: no provider %q", id, s.Provider)
	}
	return provider.Release(ctx, id)
}

// Recover stores a new job for every session that has been creating for so
// long: the process that had its job may have died with it.
func (u *Sessions) Recover(ctx context.Context, olderThan time.Duration) error {
	return u.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		now := u.clock.Now()
		ids, err := tx.Sessions().CreatingSince(ctx, now.Add(-olderThan), passSize)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := tx.Jobs().Insert(ctx, ports.Job{Kind: ProvisionJob, SessionID: id}, now); err != nil {
				return err
			}
		}
		return nil
	})
}
