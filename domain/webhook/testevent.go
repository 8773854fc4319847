package webhook

import "time"

// Bounds of the requests to an address that has not confirmed that it accepts them, which are
// events of type Test and all attempts at an endpoint that never answered: 10 an hour, which may
// come at once. The agent chose the address, and a large number of requests would be a means to
// attack it.
const (
	unverifiedPerHour  = 10
	unverifiedInterval = time.Hour / unverifiedPerHour
)

// TakeUnverified counts one such request. used is what the last call returned, zero at first. It
// returns what is used then or, if too many were sent, how long to wait.
func TakeUnverified(used, now time.Time) (after time.Time, wait time.Duration) {
	if used.Before(now) {
		used = now
	}
	if wait = used.Sub(now) - (unverifiedPerHour-1)*unverifiedInterval; wait > 0 {
		return used, wait
	}
	return used.Add(unverifiedInterval), 0
}
