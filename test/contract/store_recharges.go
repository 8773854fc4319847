package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

var rechargeClaims = []claim{
	{"of an account key each index is given once, from 1, on all networks", indexesAreGivenOnce},
	{"indexes are skipped and never come back", indexesAreSkipped},
	{"addresses of orders of late are listed, and those that were paid", addressesByUse},
	{"what cannot be booked is set aside, and taken back", setAside},
	{"an index that a failed unit took is given to the next", failedUnitTakesNoIndex},
	{"an address is read back as it was inserted, by agent and by address", addressRoundTrip},
	{"an address, an index of a key and an agent's place under a key are taken once", addressesAreUnique},
	{"of twenty first addresses of an agent one is inserted", oneFirstAddress},
	{"those of many addresses that are ours are found", ownedAddresses},
	{"the least recently audited address comes first", leastAuditedFirst},
	{"every address is listed by agent", allAddresses},
	{"how far an address was read never goes back", readThroughStays},
	{"an order is read back as it was inserted, by its agent and the operator alone", orderRoundTrip},
	{"an order changes its status, what it received and when it was paid", orderChanges},
	{"orders are listed newest first, page by page, by agent and by status", orderLists},
	{"an agent's open orders are counted on every network", openOrders},
	{"an order is payable while it is open or not long expired", payableOrders},
	{"an agent is overdue when the window of an open order is closed", overdueAgents},
}

const (
	net1, net2 = "tron-one", "tron-two"
	key1, key2 = "0011223344556677", "8899aabbccddeeff"
)

func orderNo(n int, agentID string) recharge.Order {
	return recharge.NewOrder(fmt.Sprintf("PAY%d", n), agentID, net1, addressNo(0, "").Address,
		10*domain.Dollar, storeNow.Add(time.Duration(n)*time.Minute))
}

func addOrders(t testing.TB, st ports.Store, list ...recharge.Order) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, o := range list {
			if err := tx.Recharges().InsertOrder(ctx, o); err != nil {
				return err
			}
		}
		return nil
	})
}

func sameList[T any](t testing.TB, what string, want, got []T, err error) {
	t.Helper()
	if diff := cmp.Diff(slices.Concat([]T{}, want), slices.Concat([]T{}, got)); diff != "" || err != nil {
		t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
	}
}

func orderRoundTrip(t *testing.T, st ports.Store) {
	want := orderNo(1, "agt_1")
	want.Received, want.Status, want.PaidAt = 11*domain.Dollar+1, recharge.Paid, storeNow.Add(3000)
	addOrders(t, st, want, orderNo(2, "agt_2"))
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Recharges().Order(ctx, "agt_1", want.ID)
		sameList(t, "its agent", []recharge.Order{want}, []recharge.Order{got}, err)
		got, err = tx.Recharges().LoadOrder(ctx, want.ID)
		sameList(t, "the operator", []recharge.Order{want}, []recharge.Order{got}, err)
		if _, err := tx.Recharges().Order(ctx, "agt_2", want.ID); !errors.Is(err, recharge.ErrNotFound) {
			t.Errorf("another agent: %v", err)
		}
		if _, err := tx.Recharges().Order(ctx, "agt_1", "PAY9"); !errors.Is(err, recharge.ErrNotFound) {
			t.Errorf("an unknown id: %v", err)
		}
		if _, err := tx.Recharges().LoadOrder(ctx, "PAY9"); !errors.Is(err, recharge.ErrNotFound) {
			t.Errorf("an unknown id for the operator: %v", err)
		}
		return nil
	})
}

func orderChanges(t *testing.T, st ports.Store) {
	want := orderNo(1, "agt_1")
	addOrders(t, st, want, orderNo(2, "agt_1"))
	want.Status, want.Received, want.PaidAt = recharge.Paid, 20*domain.Dollar, storeNow.Add(time.Minute)
	put := want
	put.AgentID, put.Network, put.Address, put.Amount = "agt_9", net2, "T", 1 // are not written
	put.CreatedAt, put.ExpiresAt = storeNow.Add(time.Hour), storeNow.Add(time.Hour)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Recharges().PutOrder(ctx, put); err != nil {
			return err
		}
		if err := tx.Recharges().PutOrder(ctx, orderNo(9, "agt_1")); !errors.Is(err, recharge.ErrNotFound) {
			t.Errorf("an unknown order: %v", err)
		}
		return nil
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Recharges().Orders(ctx, "agt_1", "", domain.Page{Number: 1, Size: 10})
		sameList(t, "after the change", []recharge.Order{orderNo(2, "agt_1"), want}, got.Items, err)
		return nil
	})
}

func orderLists(t *testing.T, st ports.Store) {
	var list []recharge.Order // 0, 3 and 6 are of another agent; 2 and 3 are paid
	for n := range 7 {
		o := orderNo(n, "agt_1")
		if n%3 == 0 {
			o.AgentID = "agt_2"
		}
		if n == 2 || n == 3 {
			o.Status, o.Received = recharge.Paid, o.Amount
		}
		list = append(list, o)
	}
	addOrders(t, st, list...)
	for _, c := range []struct {
		agent  string
		status recharge.Status
		page   domain.Page
		want   []int
		total  int
	}{
		{"", "", domain.Page{Number: 1, Size: 3}, []int{6, 5, 4}, 7},
		{"", "", domain.Page{Number: 3, Size: 3}, []int{0}, 7},
		{"", "", domain.Page{Number: 4, Size: 3}, nil, 7},
		{"", "", domain.Page{Number: 1 << 62, Size: 100}, nil, 7},
		{"", recharge.Pending, domain.Page{Number: 2, Size: 2}, []int{4, 1}, 5},
		{"", recharge.Paid, domain.Page{Number: 1, Size: 20}, []int{3, 2}, 2},
		{"", recharge.Failed, domain.Page{Number: 1, Size: 20}, nil, 0},
		{"agt_1", "", domain.Page{Number: 1, Size: 3}, []int{5, 4, 2}, 4},
		{"agt_1", "", domain.Page{Number: 2, Size: 3}, []int{1}, 4},
		{"agt_1", recharge.Pending, domain.Page{Number: 1, Size: 2}, []int{5, 4}, 3},
		{"agt_1", recharge.Pending, domain.Page{Number: 2, Size: 2}, []int{1}, 3},
		{"agt_2", recharge.Paid, domain.Page{Number: 1, Size: 2}, []int{3}, 1},
		{"agt_3", "", domain.Page{Number: 1, Size: 2}, nil, 0},
	} {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			var want []recharge.Order
			for _, n := range c.want {
				want = append(want, list[n])
			}
			got, err := tx.Recharges().Orders(ctx, c.agent, c.status, c.page)
			sameList(t, fmt.Sprint(c.agent, c.status, c.page), want, got.Items, err)
			if got.Total != c.total || got.Page != c.page {
				t.Errorf("%s %s: total %d, want %d; page %v", c.agent, c.status, got.Total, c.total, got.Page)
			}
			return nil
		})
	}
}

func openOrders(t *testing.T, st ports.Store) {
	for n, status := range recharge.Statuses {
		o := orderNo(n, "agt_1")
		o.Status = status
		o2 := o
		o2.ID, o2.Network = o.ID+"b", net2
		addOrders(t, st, o, o2)
	}
	addOrders(t, st, orderNo(20, "agt_2"))
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for agentID, want := range map[string]int{"agt_1": 2, "agt_2": 1, "agt_3": 0} {
			if n, err := tx.Recharges().OpenOrders(ctx, net1, agentID); n != want || err != nil {
				t.Errorf("%s has %d open orders, %v; want %d", agentID, n, err, want)
			}
		}
		if n, err := tx.Recharges().OpenOrders(ctx, net2, "agt_2"); n != 0 || err != nil {
			t.Errorf("on another network there are %d open orders, %v", n, err)
		}
		return nil
	})
}

func payableOrders(t *testing.T, st ports.Store) {
	closed := storeNow.Add(time.Hour)
	var want []recharge.Order
	for n, c := range []struct {
		status  recharge.Status
		expires time.Duration
		payable bool
	}{
		{recharge.Pending, -time.Hour, true}, {recharge.Confirming, -time.Hour, true}, {recharge.Expired, -1000, false},
		{recharge.Expired, 0, true}, {recharge.Expired, 1000, true}, {recharge.Paid, 1000, false},
		{recharge.Failed, 1000, false}, {recharge.Pending, time.Hour, true},
	} {
		o := orderNo(100-n, "agt_1") // the newest is inserted first
		o.Status, o.ExpiresAt = c.status, closed.Add(c.expires)
		elsewhere, other := o, o
		elsewhere.ID, elsewhere.Network = o.ID+"b", net2
		other.ID, other.AgentID = o.ID+"c", "agt_2"
		addOrders(t, st, o, elsewhere, other)
		if c.payable {
			want = append(want, o)
		}
	}
	twin := want[0]
	twin.ID = "PAY0" // as old as another: the smaller id comes first
	addOrders(t, st, twin)
	slices.Reverse(want)
	want = slices.Insert(want, len(want)-1, twin)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Recharges().Payable(ctx, net1, "agt_1", closed)
		sameList(t, "payable", want, got, err)
		got, err = tx.Recharges().Payable(ctx, net1, "agt_3", closed)
		sameList(t, "of another agent", nil, got, err)
		return nil
	})
}

func overdueAgents(t *testing.T, st ports.Store) {
	for n, c := range []struct {
		agent   string
		status  recharge.Status
		network string
		expires time.Duration // after the time that is asked for
	}{
		{"agt_2", recharge.Pending, net1, -time.Minute},
		{"agt_1", recharge.Confirming, net1, -1000},
		{"agt_2", recharge.Pending, net1, -1000}, // once
		{"agt_3", recharge.Pending, net1, 0},
		{"agt_4", recharge.Expired, net1, -time.Hour},
		{"agt_5", recharge.Paid, net1, -time.Hour},
		{"agt_6", recharge.Failed, net1, -time.Hour},
		{"agt_7", recharge.Pending, net2, -time.Hour},
	} {
		o := orderNo(n, c.agent)
		o.Status, o.Network, o.ExpiresAt = c.status, c.network, storeNow.Add(c.expires)
		addOrders(t, st, o)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Recharges().Overdue(ctx, net1, storeNow, 10)
		sameList(t, "overdue", []string{"agt_2", "agt_1"}, got, err)
		got, err = tx.Recharges().Overdue(ctx, net1, storeNow, 1)
		sameList(t, "at most one", []string{"agt_2"}, got, err)
		return nil
	})
}
