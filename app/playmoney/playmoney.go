// Package playmoney keeps money that was paid where it costs nothing, on a development chain or a test network, apart
// from real payments.
package playmoney

import (
	"context"
	"fmt"

	"agentproxy/app/notify"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// repos is the repositories that the use cases use.
type repos interface {
	notify.Repos
	Ledger() ports.Ledger
	Transfers() ports.Transfers
}

// Service finds such money and writes it off.
type Service struct {
	network string
	store   ports.Unit[repos]
	clock   ports.Clock
	ids     ports.IDs
}

// Network is the network that payments come from; empty: there are none.
type Network string

// New wires the use cases.
func New(network Network, store ports.Store, clock ports.Clock, ids ports.IDs) *Service {
	return &Service{network: string(network), store: ports.Narrow(store, func(tx ports.Tx) repos { return tx }),
		clock: clock, ids: ids}
}

// List lists the wallets with money that was paid on other networks than the main one, where it costs nothing.
func (s *Service) List(ctx context.Context) (list []recharge.Play, err error) {
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		list, err = tx.Transfers().PlayMoney(ctx, recharge.MainNetwork, "")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for money of other networks: %w", err)
	}
	return list, nil
}

// Check returns an error while wallets have money that was paid where it costs nothing, and payments are real: it
// would buy what costs the operator money.
func (s *Service) Check(ctx context.Context) error {
	if s.network != recharge.MainNetwork {
		return nil
	}
	list, err := s.List(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	left, _ := recharge.PlayTotal(list)
	return fmt.Errorf("%d wallets have %s USD that was paid on a development chain or a test network, and payments are "+
		"real now: write it off with agentproxy recharge write-off --reason TEXT, or use another database", len(list), left)
}

// WriteOff takes the money that List lists out of the wallets, each in a unit of its own. It returns of how many,
// how much, and how much purchases still hold.
func (s *Service) WriteOff(ctx context.Context, reason string) (wallets int, taken, held domain.Money, err error) {
	list, err := s.List(ctx)
	if err != nil {
		return 0, 0, 0, err
	}
	for _, p := range list {
		var booked billing.Entry
		err := s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
			booked = billing.Entry{}
			w, err := tx.Ledger().Wallet(ctx, p.AgentID)
			if err != nil {
				return err
			}
			now, err := tx.Transfers().PlayMoney(ctx, recharge.MainNetwork, p.AgentID)
			if err != nil || len(now) == 0 || now[0].WriteOff() == 0 {
				return err
			}
			e, err := w.Adjust(-now[0].WriteOff(), reason)
			if err != nil {
				return err
			}
			e.ID, e.AgentID, e.At = s.ids.New(billing.IDPrefix), p.AgentID, s.clock.Now()
			e.Ref = "adjust:" + e.ID
			if booked, err = tx.Ledger().Post(ctx, ports.Posting{Entry: e}); err != nil {
				return err
			}
			return notify.BalanceChanged(ctx, tx, s.ids, e.At, booked)
		})
		if err != nil {
			return wallets, taken, 0, fmt.Errorf("write off money of %s: %w", p.AgentID, err)
		}
		if booked.ID != "" {
			wallets, taken = wallets+1, taken-booked.Amount()
		}
	}
	if list, err = s.List(ctx); err != nil {
		return wallets, taken, 0, err
	}
	held, _ = recharge.PlayTotal(list)
	return wallets, taken, held, nil
}
