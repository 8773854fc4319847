package contract

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

var transferClaims = []claim{
	{"a transfer is read back as it was put", transferRoundTrip},
	{"a transfer changes until it is final", transfersChange},
	{"of twenty that make a transfer final one gets true", oneMakesItFinal},
	{"a final transfer cannot be changed or removed", finalTransfersAreKept},
	{"what an agent has in blocks that may go away is listed", seenOfAgent},
	{"what is seen up to a block is listed in chain order", seenUpToBlock},
	{"what is matched to an order is listed in chain order", transfersOfOrder},
	{"what is known of an address are its final transfers, in less out", knownOfAddress},
	{"final transfers of an address are listed from a time on", finalOfAddress},
	{"a mark is read back as it was put and its final head never goes back", marksStay},
	{"a rescan takes the mark back", rescanMovesMark},
	{"of marks that are put at once the highest stays", highestMarkStays},
}

// transferNo returns a transfer to an agent's address, in a block of its own.
func transferNo(n int, state recharge.State) recharge.Transfer {
	return recharge.Transfer{
		Key:  recharge.Key{Network: net1, TxID: fmt.Sprintf("%064x", n), LogIndex: n % 3},
		From: "Tfrom", To: addressNo(0, "").Address, Amount: domain.Money(n+1) * domain.Dollar,
		Block: int64(1000 + n), BlockTime: storeNow.Add(time.Duration(n) * 3 * time.Second), State: state,
		AgentID: "agt_1", OrderID: "PAY1", FirstSeen: storeNow.Add(time.Duration(n) * time.Hour),
	}
}

func addTransfers(t testing.TB, st ports.Store, list ...recharge.Transfer) {
	t.Helper()
	for _, x := range list {
		if !putTransfer(t, st, x) {
			t.Fatalf("transfer %s was not put", x.TxID)
		}
	}
}

func putTransfer(t testing.TB, st ports.Store, x recharge.Transfer) (changed bool) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		changed, err = tx.Transfers().PutTransfer(ctx, x)
		return err
	})
	return changed
}

func wantTransfer(t testing.TB, st ports.Store, want recharge.Transfer) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, known, err := tx.Transfers().Transfer(ctx, want.Key)
		if sameList(t, "the transfer", []recharge.Transfer{want}, []recharge.Transfer{got}, err); !known {
			t.Error("it is not known")
		}
		return nil
	})
}

func transferRoundTrip(t *testing.T, st ports.Store) {
	var list []recharge.Transfer
	for n, state := range []recharge.State{recharge.Seen, recharge.Final, recharge.Orphaned, recharge.Ignored} {
		x := transferNo(n, state)
		x.Note, x.Amount = "a note", domain.MustMoney("9999999.999999")
		list = append(list, x)
	}
	list[3].Amount, list[3].AgentID, list[3].OrderID, list[3].Note = 0, "", "", "value above int64"
	same := list[0] // another log of the same transaction, and the same on another network
	same.LogIndex, same.Amount = 7, 1
	elsewhere := list[0]
	elsewhere.Network, elsewhere.Amount = net2, 2
	list = append(list, same, elsewhere)
	addTransfers(t, st, list...)
	for _, x := range list {
		wantTransfer(t, st, x)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		unknown := list[0].Key
		unknown.LogIndex = 6
		if got, known, err := tx.Transfers().Transfer(ctx, unknown); known || err != nil || got != (recharge.Transfer{}) {
			t.Errorf("an unknown one: %+v, %v, %v", got, known, err)
		}
		return nil
	})
}

func transfersChange(t *testing.T, st ports.Store) {
	x := transferNo(1, recharge.Seen)
	addTransfers(t, st, x)
	for _, state := range []recharge.State{recharge.Orphaned, recharge.Seen, recharge.Ignored, recharge.Seen, recharge.Final} {
		x.State, x.Block, x.BlockTime = state, x.Block+1, x.BlockTime.Add(time.Second)
		x.From, x.To, x.Amount, x.Note = x.From+"1", x.To+"2", x.Amount+1, x.Note+"!"
		x.AgentID, x.OrderID = x.AgentID+"3", x.OrderID+"4"
		put := x
		put.FirstSeen = storeNow.Add(-time.Hour) // it was seen first when it was seen first
		addTransfers(t, st, put)
		wantTransfer(t, st, x)
	}
	for _, state := range []recharge.State{recharge.Final, recharge.Seen, recharge.Orphaned, recharge.Ignored} {
		put := x
		put.State, put.Amount, put.OrderID = state, 1, "PAY9"
		if putTransfer(t, st, put) {
			t.Errorf("a final transfer became %s", state)
		}
	}
	if putTransfer(t, st, x) {
		t.Error("a final transfer was put twice")
	}
	wantTransfer(t, st, x)
}

func oneMakesItFinal(t *testing.T, st ports.Store) {
	for n, known := range []bool{true, false} {
		x := transferNo(n, recharge.Seen)
		if known {
			addTransfers(t, st, x)
		}
		x.State = recharge.Final
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				var changed bool
				err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
					if _, _, err := tx.Transfers().Transfer(ctx, x.Key); err != nil {
						return err
					}
					overlap()
					changed, err = tx.Transfers().PutTransfer(ctx, x)
					return err
				})
				if err != nil {
					t.Error(err)
				} else if changed {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%d made it final (it was known: %v), want 1", won.Load(), known)
		}
	}
}

func finalTransfersAreKept(t *testing.T, st ports.Store) {
	raw, ok := st.(interface{ Writer() *sql.DB })
	if !ok {
		t.Skip("the store has no way around the port")
	}
	final, seen := transferNo(1, recharge.Final), transferNo(2, recharge.Seen)
	addTransfers(t, st, final, seen)
	for _, statement := range []string{
		"UPDATE recharge_transfers SET state = 'seen'",
		"UPDATE recharge_transfers SET order_id = 'PAY9'",
		"DELETE FROM recharge_transfers",
	} {
		if _, err := raw.Writer().ExecContext(t.Context(), statement); err == nil {
			t.Errorf("the database accepts %s", statement)
		}
		statement += " WHERE block = 1002"
		if strings.HasPrefix(statement, "DELETE") {
			continue
		}
		if _, err := raw.Writer().ExecContext(t.Context(), statement); err != nil {
			t.Errorf("the database refuses %s: %v", statement, err)
		}
	}
	wantTransfer(t, st, final)
	nothing := transferNo(3, recharge.Final)
	nothing.Amount = 0
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Transfers().PutTransfer(ctx, nothing)
		return err
	})
	if err == nil {
		t.Error("the database accepts a final transfer of nothing")
	}
}

// scattered are transfers of every state, put in an order that is not the
// chain's: number 5 first, in block 1005, down to 0; two more share the block of
// number 2.
func scattered(t testing.TB, st ports.Store, state recharge.State, change func(x *recharge.Transfer)) (inOrder []recharge.Transfer) {
	t.Helper()
	for n := range 6 {
		x := transferNo(n, state)
		change(&x)
		inOrder = append(inOrder, x)
	}
	later, last := inOrder[2], inOrder[2]
	later.TxID = strings.Repeat("f", 64)         // the same log index: by transaction
	last.TxID, last.LogIndex = later.TxID[1:], 9 // a higher one, although the transaction is smaller
	inOrder = append(inOrder[:3:3], append([]recharge.Transfer{later, last}, inOrder[3:]...)...)
	for i := range inOrder {
		addTransfers(t, st, inOrder[len(inOrder)-1-i])
	}
	return inOrder
}

// besides puts a transfer of each other state and place, none of which belongs
// to a list.
func besides(t testing.TB, st ports.Store, change ...func(x *recharge.Transfer)) {
	t.Helper()
	for n, change := range change {
		x := transferNo(100+n, recharge.Seen)
		change(&x)
		addTransfers(t, st, x)
	}
}

func seenOfAgent(t *testing.T, st ports.Store) {
	want := scattered(t, st, recharge.Seen, func(x *recharge.Transfer) { x.OrderID = "" })
	besides(t, st,
		func(x *recharge.Transfer) { x.State = recharge.Final },
		func(x *recharge.Transfer) { x.State = recharge.Orphaned },
		func(x *recharge.Transfer) { x.State = recharge.Ignored },
		func(x *recharge.Transfer) { x.AgentID = "agt_2" },
		func(x *recharge.Transfer) { x.AgentID = "" },
		func(x *recharge.Transfer) { x.Network = net2 })
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Transfers().SeenOf(ctx, net1, "agt_1")
		sameList(t, "seen", want, got, err)
		got, err = tx.Transfers().SeenOf(ctx, net1, "agt_9")
		sameList(t, "of another agent", nil, got, err)
		return nil
	})
}

func seenUpToBlock(t *testing.T, st ports.Store) {
	want := scattered(t, st, recharge.Seen, func(x *recharge.Transfer) { x.AgentID = x.TxID })
	besides(t, st,
		func(x *recharge.Transfer) { x.Block, x.State = 1, recharge.Final },
		func(x *recharge.Transfer) { x.Block, x.State = 1, recharge.Orphaned },
		func(x *recharge.Transfer) { x.Block, x.State = 1, recharge.Ignored },
		func(x *recharge.Transfer) { x.Block, x.Network = 1, net2 })
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, c := range []struct {
			block int64
			limit int
			want  []recharge.Transfer
		}{{999, 10, nil}, {1000, 10, want[:1]}, {1002, 10, want[:5]}, {1002, 4, want[:4]}, {1005, 100, want}} {
			got, err := tx.Transfers().SeenUpTo(ctx, net1, c.block, c.limit)
			sameList(t, fmt.Sprintf("up to %d, at most %d", c.block, c.limit), c.want, got, err)
		}
		return nil
	})
}

func transfersOfOrder(t *testing.T, st ports.Store) {
	want := scattered(t, st, recharge.Seen, func(x *recharge.Transfer) {
		if x.Block == 1001 || x.Block == 1004 {
			x.State = recharge.Final
		}
	})
	besides(t, st,
		func(x *recharge.Transfer) { x.State = recharge.Orphaned },
		func(x *recharge.Transfer) { x.State = recharge.Ignored },
		func(x *recharge.Transfer) { x.OrderID = "PAY2" },
		func(x *recharge.Transfer) { x.OrderID = "" })
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Transfers().OfOrder(ctx, "PAY1")
		sameList(t, "of the order", want, got, err)
		got, err = tx.Transfers().OfOrder(ctx, "")
		sameList(t, "of no order", nil, got, err)
		return nil
	})
}

func knownOfAddress(t *testing.T, st ports.Store) {
	a, b := addressNo(1, "").Address, addressNo(2, "").Address
	for n, x := range []struct {
		network, from, to string
		amount            domain.Money
		state             recharge.State
	}{
		{net1, "T", a, 100, recharge.Final},
		{net1, "T", a, 20, recharge.Final},
		{net1, a, b, 50, recharge.Final},
		{net1, a, a, 7, recharge.Final}, // in and out
		{net1, b, "T", 90, recharge.Final},
		{net2, "T", a, 1, recharge.Final},
		{net1, "T", a, 1, recharge.Seen},
		{net1, "T", a, 1, recharge.Orphaned},
		{net1, a, "T", 1, recharge.Seen},
		{net1, "T", a, 1, recharge.Ignored},
	} {
		put := transferNo(n, x.state)
		put.Network, put.From, put.To, put.Amount = x.network, x.from, x.to, x.amount
		addTransfers(t, st, put)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for address, want := range map[string]domain.Money{a: 70, b: -40, "Tnone": 0} {
			if got, err := tx.Transfers().Known(ctx, net1, address); got != want || err != nil {
				t.Errorf("%s is known to have %d, %v; want %d", address, got, err, want)
			}
		}
		return nil
	})
}

func finalOfAddress(t *testing.T, st ports.Store) {
	a := addressNo(1, "").Address
	want := scattered(t, st, recharge.Final, func(x *recharge.Transfer) {
		switch {
		case x.Block == 1002:
			x.From, x.To = a, a
		case x.Block%2 == 0:
			x.From, x.AgentID, x.OrderID = a, "", ""
		default:
			x.To = a
		}
	})
	besides(t, st,
		func(x *recharge.Transfer) { x.To = a },
		func(x *recharge.Transfer) { x.To, x.State = a, recharge.Orphaned },
		func(x *recharge.Transfer) { x.From, x.State = a, recharge.Ignored },
		func(x *recharge.Transfer) { x.To, x.State, x.Network = a, recharge.Final, net2 },
		func(x *recharge.Transfer) { x.State = recharge.Final })
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, c := range []struct {
			since time.Time
			want  []recharge.Transfer
		}{
			{time.Time{}, want}, {storeNow, want}, {storeNow.Add(time.Microsecond), want[1:]},
			{storeNow.Add(6 * time.Second), want[2:]}, {storeNow.Add(time.Minute), nil},
		} {
			got, err := tx.Transfers().FinalOf(ctx, net1, a, c.since)
			sameList(t, fmt.Sprint("since ", c.since), c.want, got, err)
		}
		return nil
	})
}

func wantMark(t testing.TB, st ports.Store, network string, want recharge.ScanCursor) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, known, err := tx.Transfers().ScanCursor(ctx, network)
		if sameList(t, "the mark", []recharge.ScanCursor{want}, []recharge.ScanCursor{got}, err); known != (want != recharge.ScanCursor{}) {
			t.Errorf("it is known: %v", known)
		}
		return nil
	})
}

func markNo(n int64) recharge.ScanCursor {
	return recharge.ScanCursor{Final: recharge.Head{Number: n, Time: storeNow.Add(time.Duration(n) * time.Second)},
		Latest: n + 19, ReadAt: storeNow.Add(time.Duration(n) * time.Minute)}
}

func putMark(t testing.TB, st ports.Store, m recharge.ScanCursor, rescan bool) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.Transfers().PutScanCursor(ctx, net1, m, rescan)
	})
}

func marksStay(t *testing.T, st ports.Store) {
	wantMark(t, st, net1, recharge.ScanCursor{})
	putMark(t, st, markNo(7), false)
	wantMark(t, st, net1, markNo(7))
	wantMark(t, st, net2, recharge.ScanCursor{})
	putMark(t, st, markNo(8), false)
	wantMark(t, st, net1, markNo(8))
	for _, back := range []recharge.ScanCursor{markNo(7), {ReadAt: storeNow, Latest: 3}} {
		putMark(t, st, back, false)
		want := back
		want.Final = markNo(8).Final
		wantMark(t, st, net1, want)
	}
}

func rescanMovesMark(t *testing.T, st ports.Store) {
	putMark(t, st, markNo(8), true)
	putMark(t, st, markNo(5), true)
	wantMark(t, st, net1, markNo(5))
	putMark(t, st, markNo(4), false)
	want := markNo(4)
	want.Final = markNo(5).Final
	wantMark(t, st, net1, want)
	putMark(t, st, recharge.ScanCursor{ReadAt: storeNow}, true)
	wantMark(t, st, net1, recharge.ScanCursor{ReadAt: storeNow})
}

func highestMarkStays(t *testing.T, st ports.Store) {
	var wg sync.WaitGroup
	for n := range int64(20) {
		wg.Go(func() {
			err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				if _, _, err := tx.Transfers().ScanCursor(ctx, net1); err != nil {
					return err
				}
				return tx.Transfers().PutScanCursor(ctx, net1, markNo(n*7%20), false)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		if m, _, err := tx.Transfers().ScanCursor(ctx, net1); m.Final != markNo(19).Final || err != nil {
			t.Errorf("the final head is %+v, %v", m.Final, err)
		}
		return nil
	})
}
