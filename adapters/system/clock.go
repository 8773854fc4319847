// Package system implements ports of the service itself: the real clock, random
// ids, the secrets derived from one root, and Bearer tokens.
package system

import (
	"os"
	"time"

	"agentproxy/ports"
)

// Clock is the clock of this host. Its zero value is ready.
type Clock struct{}

var _ ports.Clock = Clock{}

// Now returns the time in UTC, truncated to microseconds, which both databases
// keep, so that a time reads back as it was written.
func (Clock) Now() time.Time { return time.Now().Add(ahead).UTC().Truncate(time.Microsecond) }

// skewFrom names the environment variable with the time by which the clock is ahead, as time.ParseDuration
// reads it. Only a build can set it, with -ldflags "-X agentproxy/adapters/system.skewFrom=NAME": tests
// of replicas run such a program with a wrong clock. It is empty in every other build.
var skewFrom string

var ahead = func() time.Duration {
	d, _ := time.ParseDuration(os.Getenv(skewFrom))
	return d
}()
