package accounts

import (
	"context"

	"agentproxy/domain/account"
	"agentproxy/ports"
)

// Referrers is the operator's list of referring agents.
type Referrers struct {
	store ports.Unit[repos]
	clock ports.Clock
	ids   ports.IDs
}

// NewReferrers wires the use cases.
func NewReferrers(store ports.Store, clock ports.Clock, ids ports.IDs) *Referrers {
	return &Referrers{store: narrow(store), clock: clock, ids: ids}
}

// Add makes a referring agent with a code of its own.
func (u *Referrers) Add(ctx context.Context, name, code string) (account.Referrer, error) {
	r, err := account.Referrer{ID: u.ids.New("ref_"), Name: name, Code: code}.Check()
	if err != nil {
		return r, err
	}
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		return tx.Referrers().Insert(ctx, r, u.clock.Now())
	})
	return r, err
}

// List lists the referring agents, the default one first.
func (u *Referrers) List(ctx context.Context) (list []account.Referrer, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		list, err = tx.Referrers().List(ctx)
		return err
	})
	return list, err
}

// Disable refuses a code from now on. Accounts that came by it keep it.
func (u *Referrers) Disable(ctx context.Context, code string) error {
	return u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		return tx.Referrers().Disable(ctx, code, u.clock.Now())
	})
}
