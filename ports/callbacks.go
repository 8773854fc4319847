package ports

import "time"

// Callbacks is a provider that calls back when an order has changed. A call
// proves nothing: the order is read again.
type Callbacks interface {
	// Callback verifies the signature of a call and returns the refs that it is
	// about, or domain.ErrInvalid. None: it may be about any order that is open or
	// pending.
	Callback(header map[string][]string, body []byte, now time.Time) (refs []string, err error)
}
