package worker

import (
	"hash/fnv"
	"net/netip"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/session"
)

// MaxPerSession is how many workers a session may have.
const MaxPerSession = 1000

// MaxTunnels is how many connections of one worker a replica carries at once.
const MaxTunnels = 64

// Status is the state of a worker, in the words of the public API.
type Status string

// The statuses.
const (
	Active    Status = "active"
	ExitLost  Status = "exit_lost" // and it is strict: the next exit comes with its rotation
	Exhausted Status = "exhausted" // MaxBytes are used
)

// Statuses lists every status.
var Statuses = []Status{Active, ExitLost, Exhausted}

// Settings are what a worker was asked for. They stay until it is rotated or removed.
type Settings struct {
	Location session.Location
	TTL      time.Duration // 0: the exit is kept until it is rotated or lost
	Strict   bool
	Unique   bool  // shares its exit with no other unique worker of the session
	MaxBytes int64 // 0: no limit of its own
}

// Worker is a named identity inside a dynamic session.
type Worker struct {
	ID        int64 // of this worker, never of another; 0: not stored yet
	SessionID string
	Name      string
	Settings
	Exit       session.Exit // the zero address where the seller does not report it
	Turn       int          // exits that it had before
	AssignedAt time.Time    // when it got the exit
	Lost       bool         // the exit is gone, and it is strict
	Changeable bool         // it was rotated: its next use may change the settings
	Rotations  int          // by call
	LastError  Failure
	Usage      Usage
	CreatedAt  time.Time
	LastUsedAt time.Time
}

// Failure is what a connection of a worker last failed with.
type Failure struct {
	At   time.Time
	Code string
}

// Usage is what passed through a worker.
type Usage struct{ Up, Down, Connections int64 }

// Bytes returns the bytes of both directions.
func (u Usage) Bytes() int64 { return u.Up + u.Down }

// Status returns the state of the worker.
func (w Worker) Status() Status {
	switch {
	case w.Exhausted():
		return Exhausted
	case w.Lost:
		return ExitLost
	}
	return Active
}

// Exhausted reports whether the worker used all that it may.
func (w Worker) Exhausted() bool { return w.MaxBytes > 0 && w.Usage.Bytes() >= w.MaxBytes }

// ExpiresAt returns when the exit's time is over; zero: never.
func (w Worker) ExpiresAt() time.Time {
	if w.TTL == 0 {
		return time.Time{}
	}
	return w.AssignedAt.Add(w.TTL)
}

// Due reports whether the next new connection gets another exit.
func (w Worker) Due(now time.Time) bool { return w.TTL > 0 && !now.Before(w.ExpiresAt()) }

// Differs returns the word that asks for another worker than this one; empty if none does. A word left
// out asks for what is.
func (w Worker) Differs(x Parameters) string {
	switch {
	case x.Country != "" && x.Country != w.Location.Country:
		return "country"
	case x.City != "" && !SameCity(x.City, w.Location.City):
		return "city"
	case x.TTL != 0 && x.TTL != w.TTL:
		return "ttl"
	case x.Strict && !w.Strict:
		return "strict"
	}
	return ""
}

// SameCity compares two spellings of a city: sellers write one as New-York, new_york and newyork.
func SameCity(a, b string) bool { return plain(a) == plain(b) }

func plain(city string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == ' ' {
			return -1
		}
		return c
	}, strings.ToLower(city))
}

// Move gives the worker another exit.
func (w Worker) Move(exit session.Exit, now time.Time) Worker {
	w.Exit, w.AssignedAt, w.Lost = exit, now, false
	w.Turn++
	return w
}

// Pick returns the address that the fewest workers have, beginning at a place that depends on the
// seed, and never avoid. used counts the workers of an address; a negative count excludes it. It is
// false if there is none.
func Pick(from []netip.Addr, used map[netip.Addr]int, avoid netip.Addr, seed string) (best netip.Addr, ok bool) {
	h := fnv.New64a()
	h.Write([]byte(seed))
	start, least := h.Sum64(), 0
	for i := range from {
		exit := from[(start+uint64(i))%uint64(len(from))]
		n := used[exit]
		if n < 0 || exit == avoid || ok && n >= least {
			continue
		}
		if best, least, ok = exit, n, true; n == 0 {
			break
		}
	}
	return best, ok
}

// Refusals of workers.
var (
	ErrNotFound = &domain.Error{Kind: domain.NotFound, Code: "WORKER_NOT_FOUND",
		Message: "the session has no worker of this name; list its workers to see their names"}
	ErrDiffers = &domain.Error{Kind: domain.Conflict, Code: "WORKER_DIFFERS",
		Message: "a worker of this name has another country, city, ttl or strictness; rotate or remove it first"}
	ErrLimit = &domain.Error{Kind: domain.RateLimited, Code: "WORKER_LIMIT_REACHED",
		Message: "a session has at most 1,000 workers; remove one first"}
	ErrExitLost = &domain.Error{Kind: domain.Unavailable, Code: "EXIT_LOST",
		Message: "the exit of this worker is gone and it is strict; rotate the worker"}
	ErrExhausted = &domain.Error{Kind: domain.PaymentRequired, Code: "WORKER_TRAFFIC_EXHAUSTED",
		Message: "this worker has used its max_bytes; remove it, or use another one"}
	ErrParameter = &domain.Error{Kind: domain.Invalid, Code: "USERNAME_PARAMETER_INVALID",
		Message: "a word of the user name is not valid"}
)
