package ports

import "time"

// Clock returns the time, in UTC at microsecond precision, which every store
// keeps: what is written is what is read back.
type Clock interface {
	Now() time.Time
}
