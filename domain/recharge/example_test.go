package recharge_test

import (
	"fmt"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

var opened = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func orderOf(id, amount string, after time.Duration) recharge.Order {
	return recharge.NewOrder(id, "agt_1", recharge.MainNetwork, "TAgent", domain.MustMoney(amount), opened.Add(after))
}

func payment(tx, amount string, after time.Duration) recharge.Transfer {
	return recharge.Transfer{Key: recharge.Key{Network: recharge.MainNetwork, TxID: tx},
		Amount: domain.MustMoney(amount), Block: int64(after / time.Second), BlockTime: opened.Add(after)}
}

// The equal sum decides which order a transfer pays, else the oldest order.
func ExampleSettle() {
	orders := []recharge.Order{orderOf("PAY1", "10", 0), orderOf("PAY2", "25", time.Minute)}
	got := recharge.Settle(orders, []recharge.Transfer{
		payment("tx1", "25", 5*time.Minute),
		payment("tx2", "4", 6*time.Minute),
	}, nil, opened.Add(10*time.Minute))
	for _, o := range got.Orders {
		fmt.Println(o.ID, o.Status, "received", o.Received, "remaining", o.Remainder())
	}
	// Output:
	// PAY1 confirming received 4 remaining 6
	// PAY2 paid received 25 remaining 0
}

// A transfer in a block that may still be replaced shows, and credits nothing.
func ExampleSettle_seen() {
	seen := []recharge.Transfer{payment("tx1", "10", 5*time.Minute)}
	got := recharge.Settle([]recharge.Order{orderOf("PAY1", "10", 0)}, nil, seen, opened.Add(6*time.Minute))
	fmt.Println(got.Orders[0].Status, got.Orders[0].Received)

	got = recharge.Settle(got.Orders, seen, nil, opened.Add(7*time.Minute))
	fmt.Println(got.Orders[0].Status, got.Orders[0].Received)
	// Output:
	// confirming 0
	// paid 10
}

// An order expires half an hour after it was made and may be paid late for three days.
func ExampleSettle_late() {
	closed := recharge.Settle([]recharge.Order{orderOf("PAY1", "10", 0)}, nil, nil, opened.Add(31*time.Minute)).Orders
	fmt.Println(closed[0].Status)
	for _, after := range []time.Duration{72 * time.Hour, 73 * time.Hour} {
		got := recharge.Settle(closed, []recharge.Transfer{payment("tx1", "10", after)}, nil, opened.Add(after))
		fmt.Printf("%s %q\n", after, got.Transfers[0].OrderID)
	}
	// Output:
	// expired
	// 72h0m0s "PAY1"
	// 73h0m0s ""
}

func ExampleCheckAmount() {
	fmt.Println(recharge.CheckAmount(domain.MustMoney("12.50")))
	fmt.Println(recharge.CheckAmount(domain.MustMoney("0.99")) != nil)
	fmt.Println(recharge.CheckAmount(domain.MustMoney("1.001")) != nil)
	// Output:
	// <nil>
	// true
	// true
}
