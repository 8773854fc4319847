// Package operator holds the use cases of who runs the service: looking at all agents' sessions and
// money, ending and refunding what went wrong, and the trail of what operators did.
package operator

import (
	"context"

	"agentproxy/domain"
	"agentproxy/domain/audit"
	"agentproxy/ports"
)

// Trail keeps the operator's actions.
type Trail struct {
	store ports.Unit[trailRepos]
	clock ports.Clock
	ids   ports.IDs
}

// NewTrail returns the use cases.
func NewTrail(store ports.Store, clock ports.Clock, ids ports.IDs) *Trail {
	return &Trail{ports.Narrow(store, func(tx ports.Tx) trailRepos { return tx }), clock, ids}
}

// Do runs fn as an action of the operator. The first unit of work that fn commits keeps the action
// with what it changes, on a store of Audited. If fn succeeds without a unit of its own, the action
// is kept after it. An action that fails before it changed anything is not kept.
func (u *Trail) Do(ctx context.Context, a audit.Action, fn func(context.Context) error) error {
	a, err := a.Cleaned()
	if err != nil {
		return err
	}
	a.At = u.clock.Now()
	ctx, act := audit.NewContext(ctx, a)
	if err := fn(ctx); err != nil || !act.Claim() {
		return err
	}
	return u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx trailRepos) error {
		return tx.AuditTrail().Append(ctx, named(act, u.ids))
	})
}

// named returns an action with an id.
func named(act *audit.Pending, ids ports.IDs) audit.Action {
	a := act.Action()
	a.ID = ids.New(audit.IDPrefix)
	return a
}

// List lists actions, the newest first.
func (u *Trail) List(
	ctx context.Context, f audit.Filter, page domain.Page,
) (list domain.List[audit.Action], err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx trailRepos) error {
		list, err = tx.AuditTrail().List(ctx, f, page)
		return err
	})
	return list, err
}

// audited is a store whose units keep the operator's actions.
type audited struct {
	ports.Store
	ids ports.IDs
}

// Audited returns a store that keeps an action of Trail.Do in the first unit of work that changes
// something for it: either both are committed, or neither is.
func Audited(store ports.Store, ids ports.IDs) ports.Store { return audited{store, ids} }

// Update calls Update of the store, and stores the action with the changes of fn if there is one.
func (s audited) Update(
	ctx context.Context, reads ports.ReadSet, fn func(ctx context.Context, tx ports.Tx) error,
) error {
	act := audit.FromContext(ctx)
	if act == nil || !act.Claim() {
		return s.Store.Update(ctx, reads, fn)
	}
	err := s.Store.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
		if err := fn(ctx, tx); err != nil {
			return err
		}
		return tx.AuditTrail().Append(ctx, named(act, s.ids))
	})
	if err != nil {
		act.Unclaim()
	}
	return err
}
