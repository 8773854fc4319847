// Package monotime is the monotonic clock of the gateway. Every time limit is
// measured by it, so that a step of the wall clock neither cuts a tunnel nor
// extends an expired lease.
package monotime

import "time"

var start = time.Now()

// Now returns the time since the program started.
func Now() time.Duration { return time.Since(start) }
