package exit

import (
	"net/netip"
	"strconv"
	"time"

	"agentproxy/domain"
)

// The times between measurements.
const (
	Every      = 24 * time.Hour  // of an exit that was measured
	RetryAfter = time.Hour       // of one that could not be
	Apart      = 5 * time.Minute // of exits that a session or a worker has one after the other
)

// What makes an exit unreachable: checks that failed one after the other, and the least time between two that count.
const (
	UnreachableAfter = 3
	FailuresApart    = time.Minute
)

// Ref names an exit that agents use: that of a session, of one of its addresses, or of a worker of it.
type Ref struct {
	AgentID   string
	SessionID string
	Worker    string // empty: the session's own
	Index     int    // of the address of a static session; 0 for a dynamic one
}

// Record is what is kept of an exit: its last measurement, and when the next one is due.
type Record struct {
	Ref
	// Of is the exit that was measured, as Identity names it. A record of another exit than the present one is
	// no fact about that.
	Of       string
	Measured           // without an address if nothing was measured yet
	DueAt    time.Time // of the next measurement
	Told     bool      // that the place is not the one sold was listed, once for this exit
	// Failures counts the checks of this exit that failed one after the other, at least FailuresApart from each
	// other, and FailedAt is when the last of them did.
	Failures int
	FailedAt time.Time
}

// Quality counts exits that agents use, of one source and sold as being in one country.
type Quality struct {
	Source, Declared string // Declared: empty if no place was sold
	// Exits are those that were measured or are to be, and Measured those whose address the echo reported.
	Exits, Measured int
	// Differing were measured in another place than the one sold at least once, or sources disagreed; Listed are on a
	// list.
	Differing, Listed int
	OldestAt          time.Time // of their last measurements; zero: none was measured
	// Addresses that agents gave back ever: those Replaced by others, for which they paid Fees, and those that Ended
	// without, of which they got Refunds.
	Replaced, Ended int
	Fees, Refunds   domain.Money
}

// Identity names an exit among those that a session or a worker has one after the other: the id of the worker, 0 for
// the session's own, how many there were before, and the address by which the exit was sold, which may be missing.
func Identity(worker int64, turn int, sold netip.Addr) string {
	text := strconv.FormatInt(worker, 10) + "." + strconv.Itoa(turn)
	if sold.IsValid() {
		text += " " + sold.String()
	}
	return text
}

// Known returns the measurement if it is of the present exit, nil if there is none.
func (r Record) Known(present string) *Measured {
	if r.Of != present || !r.IP.IsValid() {
		return nil
	}
	return &r.Measured
}

// Take returns the record after a measurement, and whether it is to be listed that the place is not the one sold.
func (r Record) Take(of string, m Measured) (next Record, tell bool) {
	agreed, known := m.Agreed()
	differs := known && !agreed
	told := r.Told && r.Of == of
	r.Of, r.Measured, r.DueAt, r.Told = of, m, m.At.Add(Every), told || differs
	r.Failures, r.FailedAt = 0, time.Time{}
	return r, differs && !told
}

// Miss returns the record after an attempt that did not reach the echo. What was measured before stays.
func (r Record) Miss(of string, now time.Time) Record {
	if r.Of != of {
		r = Record{Ref: r.Ref, Of: of}
	}
	r.DueAt = now.Add(RetryAfter)
	return r
}

// Fail returns the record after a check that failed because of the exit alone. Within FailuresApart of one that
// counts, it does not count.
func (r Record) Fail(of string, now time.Time) Record {
	if r.Of != of {
		r = Record{Ref: r.Ref, Of: of, DueAt: now.Add(RetryAfter)}
	}
	if r.Failures == 0 || now.Sub(r.FailedAt) >= FailuresApart {
		r.Failures, r.FailedAt = r.Failures+1, now
	}
	return r
}

// FailuresOf returns how many checks of the present exit failed one after the other.
func (r Record) FailuresOf(present string) int {
	if r.Of != present {
		return 0
	}
	return r.Failures
}
