package sim_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"agentproxy/domain/recharge"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

var errStore = errors.New("the store failed on purpose")

// How a unit of work may end.
type fault int

const (
	none       fault = iota
	notBegun         // it never ran
	rolledBack       // it ran to its end and is undone
	answerLost       // it is committed and the caller gets an error
	twice            // it ran once for nothing before it counts
	statement        // one of its statements fails
)

var faultNames = []string{"", "unit not begun", "unit rolled back", "unit committed and reported as failed", "unit run twice", "statement failed"}

// change is one write of an order's status.
type change struct {
	order string
	to    recharge.Status
}

// store is a store that fails, and notes what was committed.
type store struct {
	ports.Store
	w *world

	mu         sync.Mutex
	unitsEnded int                       // units that ended, in the order of their writes
	history    []recordedChange          // committed changes
	orders     []string                  // committed orders
	matched    map[string][]recharge.Key // every transfer that was ever matched to an order
}

type recordedChange struct {
	change
	unit int
}

func (s *store) View(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	if s.w.faults.storeFault() == notBegun {
		return errStore
	}
	return s.Store.View(ctx, reads, fn)
}

func (s *store) Read(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	if s.w.faults.storeFault() == notBegun {
		return errStore
	}
	return s.Store.Read(ctx, fn)
}

func (s *store) Update(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	fate := s.w.faults.storeFault()
	if fate != none && fate != statement {
		s.w.count(faultNames[fate])
	}
	if fate == notBegun {
		return errStore
	}
	if fate == twice {
		err := s.Store.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
			if err := fn(ctx, tx); err != nil {
				return err
			}
			return errStore
		})
		if !errors.Is(err, errStore) {
			return err
		}
	}
	left := -1
	if fate == statement {
		left = s.w.faults.upTo(8)
	}
	var t *recordingTx
	unit := 0
	err := s.Store.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
		t = &recordingTx{Tx: tx, w: s.w, left: left}
		err := fn(ctx, t)
		if err == nil && fate == rolledBack {
			err = errStore
		}
		s.mu.Lock() // the unit holds what it wrote: the next one to write it is later
		s.unitsEnded++
		unit = s.unitsEnded
		s.mu.Unlock()
		return err
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	for _, c := range t.changes {
		s.history = append(s.history, recordedChange{c, unit})
	}
	s.orders = append(s.orders, t.orders...)
	for _, in := range t.transfers {
		s.matched[in.OrderID] = append(s.matched[in.OrderID], in.Key)
	}
	s.mu.Unlock()
	if fate == answerLost {
		return errStore
	}
	return nil
}

// changes returns the committed changes of each order, in order.
func (s *store) changes() map[string][]recharge.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	sorted := slices.Clone(s.history)
	slices.SortStableFunc(sorted, func(a, b recordedChange) int { return a.unit - b.unit })
	out := map[string][]recharge.Status{}
	for _, id := range s.orders {
		out[id] = []recharge.Status{recharge.Pending}
	}
	for _, c := range sorted {
		if list := out[c.order]; len(list) == 0 || list[len(list)-1] != c.to {
			out[c.order] = append(list, c.to)
		}
	}
	return out
}

// recordingTx is a unit of work that records the transitions of orders. It fails after
// left writes unless left is negative.
type recordingTx struct {
	ports.Tx
	w         *world
	left      int
	changes   []change
	orders    []string
	transfers []recharge.Transfer // that are matched
}

func (t *recordingTx) write() error {
	if t.left == 0 {
		t.w.count(faultNames[statement])
		return errStore
	}
	t.left--
	return nil
}

func (t *recordingTx) Recharges() ports.Recharges { return recordingRecharges{t.Tx.Recharges(), t} }
func (t *recordingTx) Transfers() ports.Transfers { return recordingTransfers{t.Tx.Transfers(), t} }
func (t *recordingTx) PayAddresses() ports.PayAddresses {
	return failingAddresses{t.Tx.PayAddresses(), t}
}
func (t *recordingTx) Ledger() ports.Ledger { return failingLedger{t.Tx.Ledger(), t} }
func (t *recordingTx) Outbox() ports.Outbox { return failingOutbox{t.Tx.Outbox(), t} }

type failingAddresses struct {
	ports.PayAddresses
	t *recordingTx
}

type recordingRecharges struct {
	ports.Recharges
	t *recordingTx
}

type recordingTransfers struct {
	ports.Transfers
	t *recordingTx
}

func (r failingAddresses) InsertAddress(ctx context.Context, a recharge.Address) error {
	if err := r.t.write(); err != nil {
		return err
	}
	return r.PayAddresses.InsertAddress(ctx, a)
}

func (r recordingRecharges) InsertOrder(ctx context.Context, o recharge.Order) error {
	if err := r.t.write(); err != nil {
		return err
	}
	r.t.orders = append(r.t.orders, o.ID)
	return r.Recharges.InsertOrder(ctx, o)
}

func (r recordingRecharges) PutOrder(ctx context.Context, o recharge.Order) error {
	if err := r.t.write(); err != nil {
		return err
	}
	r.t.changes = append(r.t.changes, change{o.ID, o.Status})
	return r.Recharges.PutOrder(ctx, o)
}

func (r recordingTransfers) PutTransfer(ctx context.Context, in recharge.Transfer) (bool, error) {
	if err := r.t.write(); err != nil {
		return false, err
	}
	if in.OrderID != "" {
		r.t.transfers = append(r.t.transfers, in)
	}
	return r.Transfers.PutTransfer(ctx, in)
}

func (r failingAddresses) PutAddress(ctx context.Context, a recharge.Address) error {
	if err := r.t.write(); err != nil {
		return err
	}
	return r.PayAddresses.PutAddress(ctx, a)
}

func (r recordingTransfers) PutScanCursor(ctx context.Context, network string, m recharge.ScanCursor, rescan bool) error {
	if err := r.t.write(); err != nil {
		return err
	}
	return r.Transfers.PutScanCursor(ctx, network, m, rescan)
}

type failingLedger struct {
	ports.Ledger
	t *recordingTx
}

func (l failingLedger) Post(ctx context.Context, p ports.Posting) (e billingEntry, err error) {
	if err := l.t.write(); err != nil {
		return e, err
	}
	return l.Ledger.Post(ctx, p)
}

type failingOutbox struct {
	ports.Outbox
	t *recordingTx
}

func (o failingOutbox) Append(ctx context.Context, e webhook.Event) error {
	if err := o.t.write(); err != nil {
		return err
	}
	return o.Outbox.Append(ctx, e)
}
