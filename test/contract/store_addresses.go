package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// addressNo returns a receiving address of an agent; the text of the address is any.
func addressNo(n int, agentID string) recharge.Address {
	return recharge.Address{Network: net1, Fingerprint: key1, Index: uint32(n), AgentID: agentID,
		Address: fmt.Sprintf("T%033d", n), CreatedAt: storeNow}
}

func addAddresses(t testing.TB, st ports.Store, list ...recharge.Address) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, a := range list {
			if err := tx.PayAddresses().InsertAddress(ctx, a); err != nil {
				return err
			}
		}
		return nil
	})
}

func indexesAreGivenOnce(t *testing.T, st ports.Store) {
	const callers, each = 8, 10
	var mu sync.Mutex
	given := map[uint32]int{}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				var index uint32
				err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
					index, err = tx.PayAddresses().NextIndex(ctx, net1, key1)
					return err
				})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				given[index]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i := range uint32(callers * each) {
		if given[recharge.FirstIndex+i] != 1 {
			t.Errorf("index %d was given %d times", recharge.FirstIndex+i, given[recharge.FirstIndex+i])
		}
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		next := uint32(recharge.FirstIndex + callers*each)
		for _, of := range []struct {
			network, key string
			want         uint32
		}{{net1, key2, recharge.FirstIndex}, {net2, key1, next}, {net1, key1, next + 1}, {net1, key1, next + 2}, {net2, key1, next + 3}} {
			unused, _, err := tx.PayAddresses().Unused(ctx, of.network, of.key)
			if unused != of.want || err != nil {
				t.Errorf("unused of %v is %d, %v", of, unused, err)
			}
			if index, err := tx.PayAddresses().NextIndex(ctx, of.network, of.key); index != of.want || err != nil {
				t.Errorf("the next index of %v is %d, %v", of, index, err)
			}
		}
		return nil
	})
}

func indexesAreSkipped(t *testing.T, st ports.Store) {
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, c := range []struct {
			to   uint32
			kept bool
			want uint32
		}{{5, true, 5}, {3, true, 5}, {9, false, 9}} {
			if err := tx.PayAddresses().SkipTo(ctx, net1, key1, c.to, c.kept); err != nil {
				return err
			}
			if next, kept, err := tx.PayAddresses().Unused(ctx, net1, key1); next != c.want || kept != c.kept || err != nil {
				t.Errorf("after a skip to %d it goes on from %d, %v, %v", c.to, next, kept, err)
			}
		}
		if _, kept, err := tx.PayAddresses().Unused(ctx, net2, key1); kept || err != nil {
			t.Errorf("another network is kept: %v, %v", kept, err)
		}
		index, err := tx.PayAddresses().NextIndex(ctx, net1, key1)
		if index != 9 {
			t.Errorf("the index is %d, want 9", index)
		}
		return err
	})
}

func failedUnitTakesNoIndex(t *testing.T, st ports.Store) {
	take := func(fail error) (index uint32) {
		err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
			if index, err = tx.PayAddresses().NextIndex(ctx, net1, key1); err != nil {
				return err
			}
			return fail
		})
		if !errors.Is(err, fail) {
			t.Errorf("the unit returned %v", err)
		}
		return index
	}
	if a, b, c := take(nil), take(errUnit), take(nil); a != 1 || b != 2 || c != 2 {
		t.Errorf("the indexes are %d, %d, %d; want 1, 2 and 2 again", a, b, c)
	}
}

func addressRoundTrip(t *testing.T, st ports.Store) {
	want := addressNo(1<<31-1, "agt_1")
	want.ReadThrough, want.AuditedAt, want.Drift = storeNow.Add(1000), storeNow.Add(2000), -3
	addAddresses(t, st, want)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, found, err := tx.PayAddresses().AddressOf(ctx, net1, key1, "agt_1")
		if diff := cmp.Diff(want, got); diff != "" || !found || err != nil {
			t.Errorf("%v, %v (-want +got):\n%s", found, err, diff)
		}
		owned, err := tx.PayAddresses().Owned(ctx, net1, []string{want.Address})
		if diff := cmp.Diff(map[string]recharge.Address{want.Address: want}, owned); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		for _, of := range [][3]string{{net2, key1, "agt_1"}, {net1, key2, "agt_1"}, {net1, key1, "agt_2"}} {
			if got, found, err := tx.PayAddresses().AddressOf(ctx, of[0], of[1], of[2]); found || err != nil || got != (recharge.Address{}) {
				t.Errorf("the address of %v is %+v, %v, %v", of, got, found, err)
			}
		}
		return nil
	})
}

func addressesAreUnique(t *testing.T, st ports.Store) {
	first := addressNo(1, "agt_1")
	addAddresses(t, st, first)
	for name, change := range map[string]func(a *recharge.Address){
		"the same address":                func(a *recharge.Address) { a.Address = first.Address },
		"its address under another key":   func(a *recharge.Address) { a.Address, a.Fingerprint = first.Address, key2 },
		"the same index of the key":       func(a *recharge.Address) { a.Index = first.Index },
		"a second one of the agent":       func(a *recharge.Address) { a.AgentID = first.AgentID },
		"the very same once more":         func(a *recharge.Address) { *a = first },
		"the same with another birthday":  func(a *recharge.Address) { *a = first; a.CreatedAt = storeNow.Add(time.Hour) },
		"its address for another network": nil,
	} {
		again := addressNo(2, "agt_2")
		if change == nil {
			again, again.Network = first, net2
		} else {
			change(&again)
		}
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			switch err := tx.PayAddresses().InsertAddress(ctx, again); {
			case change == nil && err != nil:
				t.Errorf("%s: %v", name, err)
			case change != nil && !errors.Is(err, ports.ErrDuplicate):
				t.Errorf("%s: %v, want a duplicate", name, err)
			}
			return tx.PayAddresses().PutAddress(ctx, first) // the unit goes on
		})
	}
	other := addressNo(1, "agt_1") // the same index and agent under the next key
	other.Fingerprint, other.Address = key2, addressNo(3, "").Address
	addAddresses(t, st, addressNo(2, "agt_2"), other)
}

func oneFirstAddress(t *testing.T, st ports.Store) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	won := 0
	for range 20 {
		wg.Go(func() {
			err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				index, err := tx.PayAddresses().NextIndex(ctx, net1, key1)
				if err != nil {
					return err
				}
				return tx.PayAddresses().InsertAddress(ctx, addressNo(int(index), "agt_1"))
			})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !errors.Is(err, ports.ErrDuplicate) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d addresses were inserted, want 1", won)
	}
}

func ownedAddresses(t *testing.T, st ports.Store) {
	want := map[string]recharge.Address{}
	var ours, asked []string
	for n := range 700 { // more than one query holds
		a := addressNo(n, fmt.Sprintf("agt_%d", n))
		if n%2 == 0 {
			addAddresses(t, st, a)
			want[a.Address] = a
			ours = append(ours, a.Address)
		}
		asked = append(asked, a.Address)
	}
	elsewhere := addressNo(1, "agt_1")
	elsewhere.Network = net2
	addAddresses(t, st, elsewhere)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, c := range []struct {
			name  string
			asked []string
			want  map[string]recharge.Address
		}{
			{"all", asked, want},
			{"ours and twice", slices.Concat(ours, ours, ours), want},
			{"one", ours[7:8], map[string]recharge.Address{ours[7]: want[ours[7]]}},
			{"the last of 257", slices.Concat(slices.Repeat([]string{"T"}, 256), ours[:1]), map[string]recharge.Address{ours[0]: want[ours[0]]}},
			{"not ours", asked[1:2], map[string]recharge.Address{}},
			{"none", nil, map[string]recharge.Address{}},
		} {
			got, err := tx.PayAddresses().Owned(ctx, net1, c.asked)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
			}
		}
		return nil
	})
}

// readAddresses are four addresses with an open order each, made so that the
// time by which they are sorted and their number are not the same order.
func readAddresses(t *testing.T, st ports.Store, set func(a *recharge.Address, at time.Time)) []recharge.Address {
	t.Helper()
	var list []recharge.Address
	for n, minute := range []int{2, -1, 1, 0} {
		a := addressNo(n, fmt.Sprintf("agt_%d", n))
		if minute >= 0 { // else never
			set(&a, storeNow.Add(time.Duration(minute)*time.Minute))
		}
		o := orderNo(n, a.AgentID)
		o.Address = a.Address
		addAddresses(t, st, a)
		addOrders(t, st, o, recharge.NewOrder(o.ID+"b", a.AgentID, net1, a.Address, domain.Dollar, storeNow))
		list = append(list, a)
	}
	return []recharge.Address{list[1], list[3], list[2], list[0]}
}

func leastAuditedFirst(t *testing.T, st ports.Store) {
	want := readAddresses(t, st, func(a *recharge.Address, at time.Time) { a.AuditedAt = at })
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, limit := range []int{1, 3, 100} {
			got, err := tx.PayAddresses().Addresses(ctx, net1, limit)
			sameList(t, fmt.Sprint("at most ", limit), want[:min(limit, 4)], got, err)
		}
		got, err := tx.PayAddresses().Addresses(ctx, net2, 100)
		sameList(t, "another network", nil, got, err)
		return nil
	})
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		audited := want[0]
		audited.AuditedAt, audited.Drift = storeNow.Add(time.Hour), 5
		if err := tx.PayAddresses().PutAddress(ctx, audited); err != nil {
			return err
		}
		got, err := tx.PayAddresses().Addresses(ctx, net1, 100)
		sameList(t, "after an audit", append(want[1:4:4], audited), got, err)
		return nil
	})
}

func allAddresses(t *testing.T, st ports.Store) {
	second := addressNo(7, "agt_1")
	second.Fingerprint = key2
	list := []recharge.Address{addressNo(3, "agt_3"), addressNo(1, "agt_1"), addressNo(2, "agt_2"), second}
	elsewhere := addressNo(1, "agt_1")
	elsewhere.Network = net2
	addAddresses(t, st, append(list, elsewhere)...)
	want := []recharge.Address{list[1], second, list[2], list[0]}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.PayAddresses().AllAddresses(ctx, net1)
		sameList(t, "all", want, got, err)
		got, err = tx.PayAddresses().AllAddresses(ctx, "tron-none")
		sameList(t, "of another network", nil, got, err)
		for network, want := range map[string]int{net1: 4, net2: 1, "tron-none": 0} {
			if n, err := tx.PayAddresses().CountAddresses(ctx, network); n != want || err != nil {
				t.Errorf("%s has %d addresses, %v; want %d", network, n, err, want)
			}
		}
		return nil
	})
}

func readThroughStays(t *testing.T, st ports.Store) {
	a, elsewhere := addressNo(1, "agt_1"), addressNo(1, "agt_1")
	elsewhere.Network = net2
	addAddresses(t, st, a, elsewhere)
	for _, c := range []struct{ put, want time.Duration }{{time.Minute, time.Minute}, {1000, time.Minute}, {time.Hour, time.Hour}} {
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			a.ReadThrough, a.AuditedAt, a.Drift = storeNow.Add(c.put), storeNow.Add(-c.put), domain.Money(c.put)
			if err := tx.PayAddresses().PutAddress(ctx, a); err != nil {
				return err
			}
			want := a
			want.ReadThrough = storeNow.Add(c.want)
			got, _, err := tx.PayAddresses().AddressOf(ctx, net1, key1, "agt_1")
			sameList(t, fmt.Sprint("after ", c.put), []recharge.Address{want}, []recharge.Address{got}, err)
			got, _, err = tx.PayAddresses().AddressOf(ctx, net2, key1, "agt_1")
			sameList(t, "another network", []recharge.Address{elsewhere}, []recharge.Address{got}, err)
			return nil
		})
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		never := a
		never.ReadThrough = time.Time{}
		if err := tx.PayAddresses().PutAddress(ctx, never); err != nil {
			return err
		}
		got, _, err := tx.PayAddresses().AddressOf(ctx, net1, key1, "agt_1")
		sameList(t, "after no time at all", []recharge.Address{a}, []recharge.Address{got}, err)
		if err := tx.PayAddresses().PutAddress(ctx, addressNo(2, "agt_2")); err == nil {
			t.Error("an address that is not ours was written")
		}
		return nil
	})
}

// addressesByUse stores three addresses: the first has an old order and a new one, the second an old one and was paid.
func addressesByUse(t *testing.T, st ports.Store) {
	list := []recharge.Address{addressNo(1, "agt_1"), addressNo(2, "agt_2"), addressNo(3, "agt_3")}
	elsewhere := addressNo(1, "agt_1")
	elsewhere.Network = net2
	addAddresses(t, st, append(list, elsewhere)...)
	for n, o := range []struct {
		of int
		at time.Time
	}{{0, storeNow.Add(-100 * time.Hour)}, {0, storeNow}, {1, storeNow.Add(-100 * time.Hour)}, {2, storeNow.Add(time.Hour)}} {
		order := recharge.NewOrder(fmt.Sprint("PAY", n), list[o.of].AgentID, net1, list[o.of].Address, domain.Dollar, o.at)
		if order.Status = recharge.Expired; n == 2 {
			order.Status = recharge.Pending
		}
		addOrders(t, st, order)
	}
	putTransfer(t, st, recharge.Transfer{Key: recharge.Key{Network: net1, TxID: "aa", LogIndex: 1}, From: "Tx", To: list[1].Address,
		Amount: 5, Block: 7, BlockTime: storeNow, State: recharge.Final, AgentID: "agt_2", FirstSeen: storeNow})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.PayAddresses().AwaitingAddresses(ctx, net1, storeNow, 10)
		sameList(t, "awaiting", list, got, err)
		got, err = tx.PayAddresses().AwaitingAddresses(ctx, net1, storeNow, 1)
		sameList(t, "the newest", list[1:], got, err)
		got, err = tx.PayAddresses().AwaitingAddresses(ctx, net1, storeNow.Add(99*time.Hour), 10)
		sameList(t, "an open order of any age", list[1:2], got, err)
		got, err = tx.PayAddresses().PaidAddresses(ctx, net1)
		sameList(t, "paid", list[1:2], got, err)
		got, err = tx.PayAddresses().PaidAddresses(ctx, net2)
		sameList(t, "paid elsewhere", nil, got, err)
		return nil
	})
}

func setAside(t *testing.T, st ports.Store) {
	first := recharge.Aside{Key: recharge.Key{Network: net1, TxID: "aa", LogIndex: 1}, AgentID: "agt_1", Amount: 5, Block: 7, Reason: "sick",
		SetAt: storeNow, TriedAt: storeNow, Tries: 1}
	second := first
	second.TxID, second.AgentID = "bb", "agt_2"
	again := first
	again.Reason, again.TriedAt = "sick again", storeNow.Add(time.Hour)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, a := range []recharge.Aside{first, second, again} {
			if err := tx.Transfers().SetAside(ctx, a); err != nil {
				return err
			}
		}
		return nil
	})
	again.Tries = 2
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		list, total, err := tx.Transfers().Aside(ctx, net1, 10)
		sameList(t, "set aside", []recharge.Aside{second, again}, list, err)
		if list, n, err := tx.Transfers().Aside(ctx, net1, 0); total != 2 || n != 2 || len(list) != 0 || err != nil {
			t.Errorf("there are %d and %d, %v", total, n, err)
		}
		_, n, err := tx.Transfers().Aside(ctx, net2, 10)
		if n != 0 {
			t.Errorf("elsewhere there are %d", n)
		}
		return err
	})
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for range 2 { // the second time there is none
			if err := tx.Transfers().TakeBack(ctx, second.Key); err != nil {
				return err
			}
		}
		list, _, err := tx.Transfers().Aside(ctx, net1, 10)
		sameList(t, "what is left", []recharge.Aside{again}, list, err)
		return nil
	})
}
