package procurement

import (
	"math"
	"time"
)

// Counter is how a provider's counter of a direct session went. It may begin anew, with a billing month or by the
// provider's hand: then what it counts comes on top of what was used before.
type Counter struct {
	Base   int64     // bytes used before the counter last began anew
	FellAt time.Time // when readings were below an earlier one first; zero: the last one was not
}

// RereadCounterAfter is how long after a reading that fell the next one counts, unless the provider's lag is longer.
const RereadCounterAfter = time.Minute

// Read returns the counter after a reading, and the bytes used in all, of which used are booked. A reading that is
// below an earlier one adds nothing: it may be an old one, which a provider shows for no longer than its lag. If one
// after that is below too, the counter began anew, and what it shows is added. One that shows nothing may as well be
// a fault of the provider, and there is nothing to add.
func (c Counter) Read(u Usage, used int64, lag time.Duration) (after Counter, total int64) {
	switch {
	case u.Bytes >= used-c.Base:
		return Counter{Base: c.Base}, c.Base + min(u.Bytes, math.MaxInt64-c.Base)
	case c.FellAt.IsZero():
		c.FellAt = u.AsOf
	case !c.Doubtful(u, lag) && u.Bytes > 0:
		return Counter{Base: used}, used + u.Bytes
	}
	return c, used
}

// Doubtful reports whether another reading has to show why the counter fell.
func (c Counter) Doubtful(u Usage, lag time.Duration) bool {
	return !c.FellAt.IsZero() && u.AsOf.Sub(c.FellAt) < max(lag, RereadCounterAfter)
}
