package billing_test

import (
	"errors"
	"fmt"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
)

// A dynamic session holds the price of all its traffic and is charged for what it used.
func ExampleTrafficCharge() {
	perGB := domain.MustMoney("3.50")
	fmt.Println("hold for 2 GB:", billing.TrafficHold(2*billing.GB, perGB))
	fmt.Println("charge for 1.2 GB:", billing.TrafficCharge(1_200_000_000, perGB))
	fmt.Println("charge for 1 byte:", billing.TrafficCharge(1, perGB))
	// Output:
	// hold for 2 GB: 7
	// charge for 1.2 GB: 4.2
	// charge for 1 byte: 0
}

// A provider took back three addresses after 19 of 30 days: the whole days left are refunded.
func ExampleUnusedDays() {
	charged := billing.IPCost(3, domain.MustMoney("2.10"))
	fmt.Println(charged, billing.UnusedDays(charged, 30, 11))
	// Output: 6.3 2.31
}

// Trial credit pays first; where it does not pay at all, own money must cover the price.
func ExampleWallet_Hold() {
	w := billing.Wallet{Available: billing.Funds{Trial: 2 * domain.Dollar, Own: 5 * domain.Dollar}}
	e, err := w.Hold(3*domain.Dollar, billing.AnyFunds)
	fmt.Println(e.Held.Trial, e.Held.Own, err)

	_, err = w.Hold(6*domain.Dollar, billing.OwnMoney)
	fmt.Println(errors.Is(err, billing.ErrInsufficientBalance))
	// Output:
	// 2 1 <nil>
	// true
}

// A purchase is a hold, a charge of what was used, and the release of the rest.
func ExampleWallet_Apply() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w, _ := billing.Wallet{}.Apply(billing.Posting{Entry: billing.CreditRecharge(10 * domain.Dollar)})

	hold, _ := w.Hold(7*domain.Dollar, billing.AnyFunds)
	w, _ = w.Apply(billing.Posting{Entry: hold})
	fmt.Println("held:", w.Balance(), w.Held.Total())

	charge := billing.Charge(w.Held, 4*domain.Dollar)
	w, _ = w.Apply(billing.Posting{Entry: charge})
	for _, e := range w.Release(w.Held, now) {
		w, _ = w.Apply(billing.Posting{Entry: e})
	}
	fmt.Println("settled:", w.Balance(), w.Held.Total(), w.Charged)
	// Output:
	// held: 3 7
	// settled: 6 0 4
}

// The agent's own budget refuses what the balance would pay.
func ExampleWallet_MaySpend() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	daily := 5 * domain.Dollar
	w := billing.Wallet{Budget: billing.Budget{Daily: &daily, Thresholds: []int{80}},
		SpentDay: billing.Day(now), SpentToday: 3 * domain.Dollar}
	fmt.Println(w.MaySpend(2*domain.Dollar, now), w.ThresholdsReached(domain.Dollar, now))
	fmt.Println(w.MaySpend(3*domain.Dollar, now) != nil)
	fmt.Println(w.MaySpend(3*domain.Dollar, now.Add(12*time.Hour))) // tomorrow, in UTC
	// Output:
	// <nil> [{daily 80}]
	// true
	// <nil>
}
