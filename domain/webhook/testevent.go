package webhook

import "time"

// Bounds of the events of type Test: 10 an hour, which may come at once. Each is a request to an address that
// the agent chose, and a large number of them would be a means to attack it.
const (
	testsPerHour = 10
	testInterval = time.Hour / testsPerHour
)

// TakeTest counts an event of type Test. used is what the last call returned, zero at first. It returns what
// is used then or, if too many were sent, how long to wait.
func TakeTest(used, now time.Time) (after time.Time, wait time.Duration) {
	if used.Before(now) {
		used = now
	}
	if wait = used.Sub(now) - (testsPerHour-1)*testInterval; wait > 0 {
		return used, wait
	}
	return used.Add(testInterval), 0
}
