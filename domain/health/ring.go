package health

import "time"

const (
	ringSize = 32              // observed events that wait for their report
	ringWait = 2 * time.Second // how far apart the two may be
)

// Ring holds what the gateway observed on a session while a report of the same may
// still come: two seconds. It is constant in size, empty when zero, and not safe
// for concurrent use.
type Ring struct {
	observed [ringSize]Event // oldest first
	n        int
}

// Add lets an observed event wait. When the ring is full the oldest gives way
// and is returned, to be observed now.
func (r *Ring) Add(e Event) (oldest Event, full bool) {
	if r.n == ringSize {
		oldest, full = r.remove(0), true
	}
	r.observed[r.n] = e
	r.n++
	return oldest, full
}

// Take removes the event of a host (as CanonicalHost writes it) that is nearest
// to a time, at most two seconds from it. Of two equally near the older is it.
func (r *Ring) Take(host string, at time.Time) (Event, bool) {
	nearest, least := -1, ringWait
	for i := range r.observed[:r.n] {
		gap := r.observed[i].At.Sub(at).Abs()
		if r.observed[i].Host == host && (gap < least || gap == least && nearest < 0) {
			nearest, least = i, gap
		}
	}
	if host == "" || nearest < 0 {
		return Event{}, false
	}
	return r.remove(nearest), true
}

// Expire removes the events that waited more than two seconds and appends them
// to into, oldest first: no report came, they are observed as they are. At the
// end of a session, ask with a time past all of them.
func (r *Ring) Expire(now time.Time, into []Event) []Event {
	kept := 0
	for _, e := range r.observed[:r.n] {
		if now.Sub(e.At) > ringWait {
			into = append(into, e)
			continue
		}
		r.observed[kept] = e
		kept++
	}
	clear(r.observed[kept:r.n]) // lets go of the hosts
	r.n = kept
	return into
}

// Len returns how many events wait, 0 to 32.
func (r *Ring) Len() int { return r.n }

func (r *Ring) remove(i int) Event {
	e := r.observed[i]
	copy(r.observed[i:], r.observed[i+1:r.n])
	r.n--
	r.observed[r.n] = Event{}
	return e
}
