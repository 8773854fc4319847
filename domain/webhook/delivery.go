package webhook

import "time"

// DeliveryPrefix begins the id of every delivery.
const DeliveryPrefix = "dlv_"

// Status is the state of a delivery.
type Status string

// The states of a delivery.
const (
	Pending   Status = "pending"   // the next attempt is due at NextAttemptAt
	Delivered Status = "delivered" // the receiver accepted the event
	Failed    Status = "failed"    // not tried again unless the agent asks for it
)

// Statuses lists every state.
var Statuses = []Status{Pending, Delivered, Failed}

// retries are the delays before the second and later attempts, a little over
// two days together. A delivery fails when they are used up.
var retries = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour,
}

// jitter is the part of a delay by which it is varied in both directions, so
// that deliveries that failed together are not retried together. With the
// longest delay it stays below maxPause.
const jitter = 0.2

// maxPause is the longest Retry-After of a receiver that is honoured.
const maxPause = 24 * time.Hour

// Delivery is one event on its way to the agent. It is sent at least once: an
// attempt whose result was not recorded is repeated.
type Delivery struct {
	ID             string
	AgentID        string
	EventID        string
	Type           Type
	Status         Status
	Attempts       int       // ever
	Tries          int       // attempts of the current schedule
	LastStatusCode int       // 0 if the last attempt got no response
	LastError      string    // empty after a success
	NextAttemptAt  time.Time // zero unless pending
	CreatedAt      time.Time
}

// NewDelivery returns a delivery of an event that is due at now.
func NewDelivery(id string, e Event, now time.Time) Delivery {
	return Delivery{ID: id, AgentID: e.AgentID, EventID: e.ID, Type: e.Type, Status: Pending, NextAttemptAt: now,
		CreatedAt: now}
}

// After returns the delivery and its endpoint after an attempt; rnd is a random
// number in [0,1). Attempts may overlap: a failure does not undo a success, and
// a success completes a delivery that had failed.
func (d Delivery) After(e Endpoint, o Outcome, now time.Time, rnd float64) (Delivery, Endpoint) {
	e = e.after(o, now)
	d.Attempts++
	if d.Status == Delivered {
		return d, e
	}
	d.LastStatusCode, d.LastError = o.StatusCode, o.Problem()
	switch {
	case o.OK():
		return d.endedAs(Delivered), e
	case d.Status == Failed:
		return d, e
	}
	d.Tries++
	if d.Type == Test || e.State() != Enabled || d.Tries > len(retries) {
		return d.endedAs(Failed), e
	}
	d.NextAttemptAt = now.Add(pause(d.Tries, o.RetryAfter, rnd))
	return d, e
}

// Abandon fails a pending delivery without an attempt if its endpoint is not
// Ready.
func (d Delivery) Abandon(e Endpoint) Delivery {
	if err := e.Ready(); err != nil && d.Status == Pending {
		d.LastStatusCode, d.LastError = 0, "the webhook was off when the delivery was due; set webhook_url and ask "+
			"for it again"
		return d.endedAs(Failed)
	}
	return d
}

// MaxPending is the largest number of pending deliveries of an agent.
const MaxPending = 1000

// KeepRefused is how long a delivery is kept that failed without an attempt: about as long as another is tried, so that
// the agent finds it when its endpoint answers again.
const KeepRefused = 3 * 24 * time.Hour

// Refuse fails a pending delivery of an agent that has MaxPending others.
func (d Delivery) Refuse() Delivery {
	d.LastStatusCode, d.LastError = 0, "too many deliveries were waiting; make the endpoint answer and ask for it again"
	return d.endedAs(Failed)
}

// Redeliver makes the delivery due at now, whatever its status. A completed one
// starts the schedule again under the same ids, so that receivers can recognize
// the repetition. It returns ErrNoEndpoint or ErrDisabled if the endpoint is
// not Ready, and ErrTest for an event of type Test.
func (d Delivery) Redeliver(e Endpoint, now time.Time) (Delivery, error) {
	if err := e.Ready(); err != nil {
		return d, err
	}
	if d.Type == Test {
		return d, ErrTest
	}
	if d.Status != Pending {
		d.Status, d.Tries, d.NextAttemptAt = Pending, 0, now
	}
	if d.NextAttemptAt.After(now) {
		d.NextAttemptAt = now
	}
	return d, nil
}

func (d Delivery) endedAs(s Status) Delivery {
	d.Status, d.NextAttemptAt = s, time.Time{}
	return d
}

// pause returns the delay after a number of tries: the scheduled one, or
// Retry-After if that is longer. It is a multiple of a microsecond, the
// precision of the stores.
func pause(tries int, retryAfter time.Duration, rnd float64) time.Duration {
	scheduled := float64(retries[tries-1]) * (1 - jitter + 2*jitter*rnd)
	return min(max(time.Duration(scheduled).Truncate(time.Microsecond), retryAfter), maxPause)
}
