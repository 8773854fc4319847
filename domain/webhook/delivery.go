package webhook

import "time"

// DeliveryPrefix begins the id of every delivery.
const DeliveryPrefix = "dlv_"

// Status is where a delivery stands.
type Status string

// The states of a delivery.
const (
	Pending   Status = "pending"   // NextAttemptAt says when it is tried
	Delivered Status = "delivered" // the receiver took the event
	Failed    Status = "failed"    // not tried again unless somebody asks
)

// Statuses lists every state.
var Statuses = []Status{Pending, Delivered, Failed}

// retries are the pauses before the second attempt and those after it; when they
// are used up the delivery has failed. Together they are a little over two days.
var retries = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour,
}

// jitter spreads each pause by this part of it to both sides, so that what
// failed together is not tried together. With maxPause it is chosen so that
// only Retry-After is ever cut.
const jitter = 0.2

// maxPause bounds what a receiver asks for with Retry-After.
const maxPause = 24 * time.Hour

// Delivery is one event on its way to the agent. It is sent at least once: a
// crash between an attempt and its record repeats the attempt.
type Delivery struct {
	ID             string
	AgentID        string
	EventID        string
	Type           Type
	Status         Status
	Attempts       int       // ever
	Tries          int       // attempts of the schedule that is running
	LastStatusCode int       // 0: the last attempt got no answer
	LastError      string    // empty after a success
	NextAttemptAt  time.Time // zero unless pending
	CreatedAt      time.Time
}

// NewDelivery is a delivery of an event that is due at once.
func NewDelivery(id string, e Event, now time.Time) Delivery {
	return Delivery{ID: id, AgentID: e.AgentID, EventID: e.ID, Type: e.Type, Status: Pending, NextAttemptAt: now, CreatedAt: now}
}

// After is the delivery and its endpoint after an attempt; rnd is a random
// number in [0,1). An attempt that overlapped with another one counts too, but
// no failure takes back a success, and a success of a failed delivery stands.
func (d Delivery) After(e Endpoint, o Outcome, now time.Time, rnd float64) (Delivery, Endpoint) {
	e = e.after(o, now)
	d.Attempts++
	if d.Status == Delivered {
		return d, e
	}
	d.LastStatusCode, d.LastError = o.StatusCode, o.Problem()
	switch {
	case o.OK():
		return d.end(Delivered), e
	case d.Status == Failed:
		return d, e
	}
	d.Tries++
	if e.State() != Enabled || d.Tries > len(retries) {
		return d.end(Failed), e
	}
	d.NextAttemptAt = now.Add(pause(d.Tries, o.RetryAfter, rnd))
	return d, e
}

// Abandon ends a pending delivery without an attempt, because its endpoint is
// not Ready.
func (d Delivery) Abandon(e Endpoint) Delivery {
	if err := e.Ready(); err != nil && d.Status == Pending {
		d.LastStatusCode, d.LastError = 0, "the webhook was off when the delivery was due; set webhook_url and ask for it again"
		return d.end(Failed)
	}
	return d
}

// Redeliver makes the delivery due now, whatever its status. One that was over
// starts the schedule again under its old id and event id, so that receivers
// can tell a repetition. It is ErrNone or ErrOff when nothing is sent at all.
func (d Delivery) Redeliver(e Endpoint, now time.Time) (Delivery, error) {
	if err := e.Ready(); err != nil {
		return d, err
	}
	if d.Status != Pending {
		d.Status, d.Tries, d.NextAttemptAt = Pending, 0, now
	}
	if d.NextAttemptAt.After(now) {
		d.NextAttemptAt = now
	}
	return d, nil
}

func (d Delivery) end(s Status) Delivery {
	d.Status, d.NextAttemptAt = s, time.Time{}
	return d
}

// pause is how long to wait after so many tries: never less than the schedule
// says, and longer when the receiver asked for it. Stores keep microseconds.
func pause(tries int, retryAfter time.Duration, rnd float64) time.Duration {
	scheduled := float64(retries[tries-1]) * (1 - jitter + 2*jitter*rnd)
	return min(max(time.Duration(scheduled).Truncate(time.Microsecond), retryAfter), maxPause)
}
