package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"agentproxy/domain"
	"agentproxy/ports"
)

// A call is tried twice for attemptWithin or, while no server is connected, more often. All attempts
// have the same id, of which the server keeps one message.
const (
	attemptWithin = 800 * time.Millisecond
	attemptPause  = 100 * time.Millisecond
	sameWithin    = 2 * time.Minute // the server recognizes a repeated id within this time
)

var (
	errAway = domain.ErrUnavailable.Msgf("the telemetry queue does not answer; try again")
	errFull = domain.ErrUnavailable.Msgf("the telemetry queue is full; try again later").After(5 * time.Second)
)

// Publish stores a call of an agent. A caller that leaves does not interrupt it.
func (q *Queue) Publish(ctx context.Context, agentID string, call []byte) (ports.QueuePlace, error) {
	i := queueOf(agentID)
	if limit := q.conn.MaxPayload(); limit > 0 && int64(len(call)) > limit-headroom {
		q.metrics.published.WithLabelValues("too large").Inc()
		return ports.QueuePlace{}, ports.ErrCallTooLarge
	}
	if q.conn.IsClosed() {
		return ports.QueuePlace{}, errAway
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*q.config.Attempt+attemptPause)
	defer cancel()
	m := &nats.Msg{Subject: subjectName + strconv.Itoa(i), Data: call}
	id := nuid.Next()
	for {
		seq, err := q.attempt(ctx, m, id)
		switch {
		case err == nil:
			q.metrics.published.WithLabelValues("stored").Inc()
			return ports.QueuePlace{Queue: i, Seq: seq}, nil
		case isFull(err):
			q.metrics.published.WithLabelValues("full").Inc()
			return ports.QueuePlace{}, errFull
		case errors.Is(err, jetstream.ErrNoStreamResponse):
			_, _ = q.stream(ctx, i) // it is made by who needs it first
		}
		select {
		case <-ctx.Done():
			q.metrics.published.WithLabelValues("away").Inc()
			q.metrics.why(q.log, err)
			return ports.QueuePlace{}, errAway
		case <-time.After(attemptPause):
		}
	}
}

func (q *Queue) attempt(ctx context.Context, m *nats.Msg, id string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, q.config.Attempt)
	defer cancel()
	m.Header = nil
	ack, err := q.js.PublishMsg(ctx, m, jetstream.WithMsgID(id), jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// The codes of the server's refusals to store a message: its stream is full, or the server.
const (
	storeFailed jetstream.ErrorCode = 10077
	noResources jetstream.ErrorCode = 10023
)

// isFull reports whether the server has no room for a message, in its queue or at all.
func isFull(err error) bool {
	var refusal *jetstream.APIError
	return errors.As(err, &refusal) && (refusal.ErrorCode == storeFailed || refusal.ErrorCode == noResources)
}

// stream returns a queue's stream, which it makes if there is none. One that is there is left as it
// is: an operator may have changed its bounds.
func (q *Queue) stream(ctx context.Context, i int) (jetstream.Stream, error) {
	name := streamName + strconv.Itoa(i)
	s, err := q.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = q.js.CreateStream(ctx, jetstream.StreamConfig{Name: name,
			Subjects:    []string{subjectName + strconv.Itoa(i)},
			Description: "telemetry that agentproxy has answered and not yet folded", Retention: jetstream.LimitsPolicy,
			Discard: jetstream.DiscardNew, MaxBytes: q.config.MaxBytes, Storage: jetstream.FileStorage,
			Duplicates: sameWithin, Replicas: q.copies()})
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", name, err)
	}
	return s, nil
}

// park stores a message that could not be folded where an operator finds it.
func (q *Queue) park(ctx context.Context, i int, c ports.QueuedCall) error {
	_, err := q.js.Stream(ctx, parkedStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = q.js.CreateStream(ctx, jetstream.StreamConfig{Name: parkedStream, Subjects: []string{parkedSubject},
			Description: "telemetry that agentproxy could not fold", Discard: jetstream.DiscardOld,
			MaxBytes: parkedBytes, MaxAge: parkedAge, Storage: jetstream.FileStorage, Duplicates: sameWithin,
			Replicas: q.copies()})
	}
	if err == nil {
		m := &nats.Msg{Subject: parkedSubject, Data: c.Body}
		_, err = q.js.PublishMsg(ctx, m, jetstream.WithMsgID(fmt.Sprintf("%d-%d", i, c.Seq)))
	}
	if err != nil {
		return fmt.Errorf("park a message: %w", err)
	}
	return nil
}
