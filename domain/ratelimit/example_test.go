package ratelimit_test

import (
	"fmt"
	"time"

	"agentproxy/domain/ratelimit"
)

// A limit of 30 a minute admits a burst of 30, then a call every two seconds.
func ExampleLimit_Take() {
	limit, now := ratelimit.Limit{PerMinute: 30}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	state, d := limit.Take(ratelimit.State{}, now, 30)
	fmt.Println(d.Allowed, d.Remaining)

	state, d = limit.Take(state, now, 1)
	fmt.Println(d.Allowed, d.RetryAfter)

	_, d = limit.Take(state, now.Add(d.RetryAfter), 1)
	fmt.Println(d.Allowed, d.Remaining)
	// Output:
	// true 0
	// false 2s
	// true 0
}

// A process asks the shared state once for its callers and for spare calls that need no question.
func ExampleShare_Take() {
	limit, now := ratelimit.Limit{PerMinute: 600}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	_, _, known := ratelimit.Share{}.Take(limit, now)
	request := limit.NewRequest(1)
	state, grant := request.TakeFrom(ratelimit.State{}, now)
	fmt.Println(known, request.Tokens, grant.Tokens, state.TAT.Sub(now))
	// Output: false 8 8 800ms
}
