// Package system implements ports of the service itself: the real clock, random
// ids, the secrets derived from one root, and Bearer tokens.
package system

import (
	"time"

	"agentproxy/ports"
)

// Clock is the clock of this host. Its zero value is ready.
type Clock struct{}

var _ ports.Clock = Clock{}

// Now returns the time in UTC, truncated to microseconds, which both databases
// keep, so that a time reads back as it was written.
func (Clock) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
