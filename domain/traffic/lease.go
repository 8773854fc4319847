package traffic

import (
	"math"
	"time"
)

// Usage is what has passed through a session. Limit 0 means no limit (static).
type Usage struct {
	Limit       int64 // bytes bought
	Up          int64 // bytes taken from the client
	Down        int64 // bytes written to the client
	Connections int64
	Leased      int64 // bytes granted to gateways and not yet reported as used
	UpdatedAt   time.Time
}

// Used returns the bytes of both directions.
func (u Usage) Used() int64 { return u.Up + u.Down }

// Left returns the bytes that are neither used nor leased.
func (u Usage) Left() int64 {
	if u.Limit == 0 {
		return math.MaxInt64 - u.Used() - u.Leased
	}
	return u.Limit - u.Used() - u.Leased
}

// Exhausted reports whether the session has used all that was bought.
func (u Usage) Exhausted() bool { return u.Limit > 0 && u.Used() >= u.Limit }

// BookAt returns the moment at which more traffic is booked: now, or the end of the hour of the last use if that hour
// is settled. So an hour is charged once, whatever the order in which replicas report and settle.
func (u Usage) BookAt(now time.Time, settled bool) time.Time {
	if end := u.UpdatedAt.Truncate(time.Hour).Add(time.Hour); settled && now.Before(end) {
		return end
	}
	return now
}

// LowThresholds are the percentages of the traffic at which agents are
// notified.
var LowThresholds = []int{80, 95}

// ThresholdsReached lists the LowThresholds that adding d reaches. Usage never
// decreases, so each is reached once in the life of a session.
func (u Usage) ThresholdsReached(d Delta) (reached []int) {
	for _, p := range LowThresholds {
		at := u.threshold(p)
		if u.Limit > 0 && u.Used() < at && u.Used()+d.Up+d.Down >= at {
			reached = append(reached, p)
		}
	}
	return reached
}

// threshold returns a percentage of the limit, rounded up.
func (u Usage) threshold(percent int) int64 {
	return u.Limit/100*int64(percent) + (u.Limit%100*int64(percent)+99)/100
}

// Delta moves a Usage.
type Delta struct {
	Up, Down, Connections int64
	Leased                int64
	Workers               []WorkerUse // the part of it that moved through workers
	At                    time.Time   // when bytes or connections last moved
}

// Moved returns the usage after d, and false if it would have more than was bought, or less than nothing.
func (u Usage) Moved(d Delta) (Usage, bool) {
	u.Up, u.Down, u.Connections, u.Leased = u.Up+d.Up, u.Down+d.Down, u.Connections+d.Connections, u.Leased+d.Leased
	u.UpdatedAt = d.At
	return u, u.Leased >= 0 && u.Up >= 0 && u.Down >= 0 && (u.Limit == 0 || u.Used()+u.Leased <= u.Limit)
}

// Lease is what one replica may spend of a session's traffic. The store stamps it with
// the database's time, so that the clocks of replicas do not decide when it is reclaimed.
type Lease struct {
	SessionID   string
	ID          string
	Replica     string
	Granted     int64 // cumulative
	Up, Down    int64 // cumulative, as last reported
	Connections int64
	Workers     []WorkerUse // the part of it by worker, sorted by ID
	// Lasts is how long its gateway relays after a renewal without another; StopAfter at least. It is written
	// and not read: what it is beyond StopAfter the lease is stored as younger by, so that every replica, whatever
	// its own setting, takes it back as long after its gateway stopped.
	Lasts time.Duration
	Idle  time.Duration // since it was stored last, by the database's clock, less what it lasts beyond StopAfter
}

// Extra returns what a lease lasts beyond StopAfter.
func (l Lease) Extra() time.Duration { return min(max(l.Lasts-StopAfter, 0), MaxLasts-StopAfter) }

// Unused returns what was granted and not reported as used.
func (l Lease) Unused() int64 { return l.Granted - l.Up - l.Down }

// Renew decides one request: what moves in the usage, the lease after it, and the
// answer. A lease that asks for the first time has the zero counters. Counters
// that went backwards (a request overtaken by a later one) change nothing.
func Renew(u Usage, l Lease, request LeaseRequest, now time.Time) (Delta, Lease, Grant) {
	d := Delta{At: u.UpdatedAt,
		Up:          max(request.Up-l.Up, 0),
		Down:        max(request.Down-l.Down, 0),
		Connections: max(request.Connections-l.Connections, 0),
	}
	l.Lasts = request.Lasts
	// A gateway never relays beyond its grant; should a faulty one claim to,
	// the excess is its loss, not the agent's.
	l.Workers = forgetWorkers(l.Workers, request.Forget)
	over := d.Up + d.Down - l.Unused()
	if over > 0 {
		cut := min(d.Down, over)
		d.Down -= cut
		d.Up -= over - cut
	}
	if over <= 0 { // of what is not charged nothing is known by worker
		d.Workers, l.Workers = renewWorkers(l.Workers, request.Workers, d)
	}
	l.Up, l.Down, l.Connections = l.Up+d.Up, l.Down+d.Down, l.Connections+d.Connections
	d.Leased = -(d.Up + d.Down)
	// Clocks of replicas may differ by milliseconds. The time of use never goes back: an hour that
	// began stays begun.
	if d.Up+d.Down+d.Connections > 0 && now.After(d.At) {
		d.At = now
	}

	want := max(request.Want, 0)
	if request.Close {
		want = 0
	}
	more := want - l.Unused()
	if more > 0 {
		left := u.Left() - d.Up - d.Down - d.Leased
		more = Size(more, left)
	}
	l.Granted += more
	d.Leased += more

	g := Grant{SessionID: request.SessionID, Lease: request.Lease, Granted: l.Granted, Outcome: Open}
	if l.Unused() == 0 && want > 0 {
		g.Outcome = Waiting
		u.Up, u.Down = u.Up+d.Up, u.Down+d.Down
		if u.Exhausted() {
			g.Outcome = Exhausted
		}
	}
	return d, l, g
}

// With returns the usage with what a lease has used by a report, beyond what is booked of it.
func (u Usage) With(l Lease, r Report) Usage {
	up, down := max(r.Up-l.Up, 0), max(r.Down-l.Down, 0)
	u.Up, u.Down, u.Leased = u.Up+up, u.Down+down, u.Leased-up-down
	u.Connections += max(r.Connections-l.Connections, 0)
	return u
}

// Calm reports whether nothing becomes due before all that is leased is used: no threshold is reached, the end is
// not near, and the hour does not turn before the next renewal: bytes are booked in the hour in which they moved.
func (u Usage) Calm(now time.Time) bool {
	if !now.Truncate(time.Hour).Equal(now.Add(FoldAfter).Truncate(time.Hour)) {
		return false
	}
	last := u.threshold(LowThresholds[len(LowThresholds)-1])
	return u.Limit == 0 || u.Used() < last && u.ThresholdsReached(Delta{Down: u.Leased}) == nil
}

// nearEnd is the part of what is left that one request gets near the end, and
// lastBytes what is given out whole: so that several replicas share the rest.
const (
	nearEnd   = 4
	lastBytes = 64 << 10
)

// Size returns how many of the bytes left are granted: the bytes wanted while
// there are plenty, fewer near the end, at most MaxLease.
func Size(want, left int64) int64 {
	want = min(want, MaxLease, max(left, 0))
	return max(min(want, left/nearEnd), min(want, lastBytes))
}
