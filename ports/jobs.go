package ports

import (
	"context"
	"time"
)

// The kinds of jobs. Each decides anew whether its work is due: what it was stored
// for may have been put off.
const (
	DriveOrdersJob = "drive-orders" // the orders of a session, or the delivery of one that has none
	DeliverJob     = "deliver"      // one attempt of a webhook delivery
)

// Job is work that must survive a crash. It is about a session or a delivery.
type Job struct {
	Kind      string
	SessionID string
	After     time.Duration
	At        time.Time // not before this; if zero, After counts

	// DeliveryID is of a delivery. A job for the same one and the same At that is
	// not done yet is not inserted again.
	DeliveryID string

	// Traceparent is of the unit that inserts the job, as W3C Trace Context writes it; the store sets it. ""
	// means that the unit is not traced.
	Traceparent string
}

// Jobs inserts work in the unit of work that makes it necessary: it runs at
// least once after the commit, and never when the unit rolls back.
type Jobs interface {
	Insert(ctx context.Context, j Job, now time.Time) error
}

// RequeueAfter is the error of a job that cannot be done yet: it runs again after so
// long, and did not fail.
type RequeueAfter time.Duration

func (r RequeueAfter) Error() string { return "the job runs again in " + time.Duration(r).String() }
