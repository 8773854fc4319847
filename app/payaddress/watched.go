package payaddress

import (
	"context"
	"fmt"
	"time"

	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// mostAwaiting bounds how many addresses are read in every scan because of an order: ten calls of a source. Beyond
// them those whose windows ended first are read with the rest, so that accounts without end delay no payment.
const mostAwaiting = 10_000

// Watched divides the addresses into those that are read in every scan, because an order waits for a payment there or
// one was ever made, and the rest. One scan at a time uses it; what it keeps may be lost.
type Watched struct {
	store ports.Unit[repos]
	chain ports.Chain

	paid  map[string]recharge.Address // ever; nil: not read yet
	all   []recharge.Address
	often map[string]bool // those of the last scan, which are read through its cursor
}

// NewWatched wires it.
func NewWatched(store ports.Store, chain ports.Chain) *Watched {
	return &Watched{store: ports.Narrow(store, func(tx ports.Tx) repos { return tx }), chain: chain}
}

// Often returns the addresses of this scan, and those of them that were not in the last one.
func (w *Watched) Often(ctx context.Context, now time.Time) (list, fresh []recharge.Address, err error) {
	err = w.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		if w.paid == nil {
			if err := w.readPaid(ctx, tx); err != nil {
				return err
			}
		}
		list, err = tx.PayAddresses().AwaitingAddresses(ctx, w.chain.Network(), now.Add(-recharge.Late), mostAwaiting)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list the addresses to read: %w", err)
	}
	in := make(map[string]bool, len(list))
	for _, a := range list {
		in[a.Address] = true
	}
	for address, a := range w.paid {
		if !in[address] {
			list = append(list, a)
		}
	}
	for _, a := range list {
		if !w.often[a.Address] {
			fresh = append(fresh, a)
		}
	}
	return list, fresh, nil
}

// Through notes that the addresses of a scan are read through its cursor.
func (w *Watched) Through(list []recharge.Address) {
	w.often = make(map[string]bool, len(list))
	for _, a := range list {
		w.often[a.Address] = true
	}
}

// Rest returns the addresses that Through did not name, and reads which were paid by others.
func (w *Watched) Rest(ctx context.Context) (rest []recharge.Address, err error) {
	all, err := w.All(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.store.View(ctx, ports.ReadSet{}, w.readPaid); err != nil {
		return nil, fmt.Errorf("list the addresses that were paid: %w", err)
	}
	for _, a := range all {
		if !w.often[a.Address] {
			rest = append(rest, a)
		}
	}
	return rest, nil
}

// All returns all addresses. What a scan uses of them never changes.
func (w *Watched) All(ctx context.Context) ([]recharge.Address, error) {
	err := w.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		n, err := tx.PayAddresses().CountAddresses(ctx, w.chain.Network())
		if err != nil || n == len(w.all) {
			return err
		}
		all, err := tx.PayAddresses().AllAddresses(ctx, w.chain.Network())
		if err == nil {
			w.all = all
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	return w.all, nil
}

func (w *Watched) readPaid(ctx context.Context, tx repos) error {
	list, err := tx.PayAddresses().PaidAddresses(ctx, w.chain.Network())
	if err != nil {
		return err
	}
	w.paid = make(map[string]recharge.Address, len(list))
	for _, a := range list {
		w.paid[a.Address] = a
	}
	return nil
}

// Paid notes an address of a scan to which a transfer was recorded.
func (w *Watched) Paid(a recharge.Address) {
	if w.paid != nil {
		w.paid[a.Address] = a
	}
}
