// Package system is the service's own machinery behind the ports: the real
// clock, random ids, the secrets derived from one root, and Bearer tokens.
package system

import (
	"time"

	"agentproxy/ports"
)

// Clock is the clock of this host. Its zero value is ready.
type Clock struct{}

var _ ports.Clock = Clock{}

// Now is the time in UTC, cut to microseconds: what both databases keep, so
// that a time that was written equals the one read back.
func (Clock) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
