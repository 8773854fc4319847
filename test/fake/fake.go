// Package fake holds fakes for tests: a clock to set, ids that are the same on every run,
// and a seller of exits that follows a script.
package fake

import (
	"encoding/base32"
	"encoding/binary"
	"sync"
	"time"

	"agentproxy/ports"
)

// Start is the initial time of a Clock: a Friday noon far from every change of day, month
// and year.
var Start = time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)

// Clock is a ports.Clock that only moves by Set and Advance. It may be used by many
// goroutines.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

var _ ports.Clock = (*Clock)(nil)

// NewClock returns a clock that is set to Start.
func NewClock() *Clock { return &Clock{now: Start} }

// Now returns the time that was set.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set moves the clock to a time, which is stored as the real clock returns it: in UTC with
// microseconds.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t.UTC().Truncate(time.Microsecond)
}

// Advance moves the clock and returns the new time.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d).Truncate(time.Microsecond)
	return c.now
}

var idText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// IDs counts from 1 for each prefix, so that a test that creates one more session changes
// no other id. Its zero value is ready to use.
type IDs struct {
	mu   sync.Mutex
	last map[string]uint64
}

var _ ports.IDs = (*IDs)(nil)

// New returns the prefix and 20 characters of a-z and 2-7, which real ids have among
// others: "sess_aaaaaaaaaaaaaaaaaaab" is the first session.
func (g *IDs) New(prefix string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		g.last = map[string]uint64{}
	}
	g.last[prefix]++
	return ID(prefix, g.last[prefix])
}

// ID returns the id that New returns at its n-th call for a prefix.
func ID(prefix string, n uint64) string {
	var b [15]byte // 120 bits are 24 characters; the last 20 of them hold n
	binary.BigEndian.PutUint64(b[7:], n)
	return prefix + idText.EncodeToString(b[:])[4:]
}
