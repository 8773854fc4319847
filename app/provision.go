package app

import (
	"context"
	"errors"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
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
// one that is still creating has an order, which has its time.
func (u *Sessions) deliver(ctx context.Context, p purchase, held Done) (Done, error) {
	id := held.View.ID
	unknown := u.drive(ctx, id)
	v, err := u.Read(context.WithoutCancel(ctx), p.AgentID, id)
	if err != nil {
		return Done{}, errors.Join(err, unknown)
	}
	switch v.Status {
	case session.Creating:
		return Done{View: v, Status: 202}, u.answered(ctx, p.AgentID, p.Call, id, 202)
	case session.Failed:
		return Done{}, failureError(v.Failure).With("session_id", id)
	}
	return Done{View: v, Status: 201}, nil
}

// answered notes how the first call under a key was answered while what it asked
// for was on its way: a replay need not wait any more, and gets the same status.
func (u *Sessions) answered(ctx context.Context, agentID string, call Call, resource string, status int) error {
	if call.Key == "" {
		return nil
	}
	return u.store.Update(context.WithoutCancel(ctx), func(ctx context.Context, tx ports.Tx) error {
		c, found, err := tx.Idempotency().Find(ctx, agentID, call.Path, call.Key, time.Time{})
		if err != nil || !found || c.Resource != resource {
			return err
		}
		c.Status = status
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
func (u *Sessions) Provision(ctx context.Context, id string) error { return u.drive(ctx, id) }

// deliverLocal delivers a session of a provider that does no IO, or fails it and
// gives the money back. An error says that neither is known yet.
func (u *Sessions) deliverLocal(ctx context.Context, s session.Session) error {
	product, err := u.catalog.product(s.ProductNo)
	provider, known := u.catalog.local(s.Provider)
	if err != nil || !known {
		return u.fail(ctx, s.ID, ports.ErrProvider.Msgf("the product is no longer sold"))
	}
	from, _ := sourceOf(product, s.Provider)
	err = u.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		s, err := tx.Sessions().Load(ctx, s.ID)
		if err != nil || s.Status != session.Creating {
			return err
		}
		s, err = u.activateLocal(ctx, books{tx, u.ids, u.clock.Now()}, s, from, provider)
		if err != nil {
			return err
		}
		return tx.Sessions().Put(ctx, s)
	})
	if refusedHere(err) {
		return u.fail(ctx, s.ID, err)
	}
	if err == nil {
		u.hub.SessionChanged(s.ID)
	}
	return err
}

// sourceOf is how a product is bought of a provider.
func sourceOf(p catalog.Product, provider string) (procurement.Source, bool) {
	for _, from := range p.Sources {
		if from.Provider == provider {
			return from, true
		}
	}
	return procurement.Source{Provider: provider}, false
}

// refusedHere reports whether an error is what an agent hears when provably
// nothing was bought.
func refusedHere(err error) bool {
	return errors.Is(err, ports.ErrProvider) || errors.Is(err, ports.ErrTimeout) || errors.Is(err, catalog.ErrOutOfStock)
}

// fail ends a session whose provisioning was refused and gives everything back.
func (u *Sessions) fail(ctx context.Context, id string, cause error) error {
	err := u.store.Update(context.WithoutCancel(ctx), func(ctx context.Context, tx ports.Tx) error {
		s, err := tx.Sessions().Load(ctx, id)
		if err != nil || s.Status != session.Creating {
			return err
		}
		return u.failIn(ctx, books{tx, u.ids, u.clock.Now()}, s, cause)
	})
	if err == nil {
		u.hub.SessionChanged(id)
	}
	return err
}

// failIn is fail in a unit. The key of the call goes too, so that the agent may
// try the same call again.
func (u *Sessions) failIn(ctx context.Context, b books, s session.Session, cause error) error {
	failure := session.Failure{Code: ports.ErrProvider.Code, Message: ports.ErrProvider.Message}
	if e, ok := errors.AsType[*domain.Error](cause); ok {
		failure = session.Failure{Code: e.Code, Message: e.Message}
	}
	s, err := s.Fail(failure, b.now)
	if err != nil {
		return err
	}
	if err := b.tx.Idempotency().DropFor(ctx, s.AgentID, s.ID); err != nil {
		return err
	}
	_, err = u.end(ctx, b.tx, s, "failed", failure.Code, b.now)
	return err
}

// GiveUp ends a session whose job has failed every time, and gives everything
// back, where provably nothing was bought: there is no order at a seller. With
// one the session keeps its hold, as the agent was told, until the seller
// answers.
func (u *Sessions) GiveUp(ctx context.Context, id string) error {
	var s session.Session
	var orders []procurement.Order
	err := u.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if s, err = tx.Sessions().Load(ctx, id); err != nil {
			return err
		}
		orders, err = tx.Orders().Of(ctx, id)
		return err
	})
	if err != nil || s.Status != session.Creating || len(orders) > 0 {
		return err
	}
	return u.fail(ctx, id, ports.ErrProvider.Msgf("the session could not be delivered; try again"))
}

// Release is the job that gives up what was bought for a session that ended.
func (u *Sessions) Release(ctx context.Context, id string) error { return u.drive(ctx, id) }

// Recover stores a new job for every session that has been creating for so
// long: the process that had its job may have died with it. Where there is an
// order at a seller, that has a time of its own.
func (u *Sessions) Recover(ctx context.Context, olderThan time.Duration) error {
	return u.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		now := u.clock.Now()
		ids, err := tx.Sessions().CreatingSince(ctx, now.Add(-olderThan), passSize)
		if err != nil {
			return err
		}
		for _, id := range ids {
			orders, err := tx.Orders().Of(ctx, id)
			if err != nil {
				return err
			}
			if len(orders) > 0 {
				continue
			}
			if err := tx.Jobs().Insert(ctx, ports.Job{Kind: ProvisionJob, SessionID: id}, now); err != nil {
				return err
			}
		}
		return nil
	})
}
