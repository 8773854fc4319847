package procurement_test

import (
	"errors"
	"fmt"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// A provider that works comes before a cheaper one that does not; one without stock is never asked.
func ExampleChoose() {
	sources := []procurement.Source{{Provider: "broken"}, {Provider: "empty"}, {Provider: "works"}}
	conditions := map[string]procurement.Condition{
		"broken": {}, "empty": {Ready: true, Stock: procurement.StockNo}, "works": {Ready: true},
	}
	list := procurement.Choose(sources, session.Location{}, 30, func(s procurement.Source) procurement.Condition {
		return conditions[s.Provider]
	})
	for _, s := range list {
		fmt.Println(s.Provider)
	}
	// Output: works
}

// An order whose answer was lost is adopted as soon as the provider lists it under its key.
func ExampleDecide() {
	sent := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o := procurement.Order{ID: "ord_1", Status: procurement.Unknown, SentAt: sent,
		Intent: procurement.Intent{Key: "ord_1"}}
	seen := procurement.Evidence{Found: []procurement.Delivery{{Ref: "4711", Label: "ord_1", Cost: domain.Dollar}}}
	verdict, d := procurement.Decide(o, true, seen, sent.Add(time.Minute))
	fmt.Println(verdict, d.Ref)

	verdict, _ = procurement.Decide(o, true, procurement.Evidence{}, sent.Add(time.Minute))
	fmt.Println(verdict)
	verdict, _ = procurement.Decide(o, true, procurement.Evidence{}, sent.Add(procurement.ListingDelay+time.Minute))
	fmt.Println(verdict)
	// Output:
	// adopt 4711
	// wait
	// absent
}

// An error without a class may have bought something.
func ExampleClassOf() {
	fmt.Println(procurement.ClassOf(errors.New("connection reset")))
	// Output: ambiguous
}

// What is asked for is asked at a quarter of its age, from two seconds to ten minutes.
func ExampleBackoff() {
	fmt.Println(procurement.Backoff(time.Second), procurement.Backoff(time.Minute), procurement.Backoff(time.Hour))
	// Output: 2s 15s 10m0s
}
