package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"agentproxy/domain"
	"agentproxy/ports"
)

// The bounds of what one fold gets, and of what waits in memory for it.
const (
	maxCalls     = 256
	maxCallBytes = 4 << 20
	waiting      = 256 // messages
)

// attempts is how often a message is folded before it is set aside.
const attempts = 3

// shortPause returns the first pause after a failure, and longPause the longest.
func (q *Queue) shortPause() time.Duration { return q.config.Heartbeat / 20 }
func (q *Queue) longPause() time.Duration  { return q.config.Heartbeat }

type fold = func(context.Context, ports.QueuedCalls) (ports.FoldCursor, error)

// Consume has the queues of this replica folded until the context ends.
func (q *Queue) Consume(ctx context.Context, fold fold) {
	var wg sync.WaitGroup
	wg.Go(func() { q.beat(ctx) })
	for i := range queues {
		wg.Go(func() { q.work(ctx, i, fold) })
	}
	wg.Wait()
}

// work folds a queue whenever it falls to this replica.
func (q *Queue) work(ctx context.Context, i int, fold fold) {
	pause := q.shortPause()
	for wait(ctx, pause) {
		if !q.mine(i) || !q.conn.IsConnected() {
			pause = q.config.Heartbeat / 4
			continue
		}
		err := q.run(ctx, i, fold)
		q.metrics.forget(i)
		if err == nil || ctx.Err() != nil {
			pause = q.shortPause()
			continue
		}
		pause = min(2*pause, q.longPause())
		q.metrics.why(q.log, err)
	}
}

// wait returns after a time, or false when the context has ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// worker folds one queue from the cursor on.
type worker struct {
	*Queue
	i      int
	fold   fold
	stream jetstream.Stream
	id     string // of the stream
	at     uint64 // folded
	purged uint64
	calls  chan arrived
}

// arrived is a message that waits for the fold.
type arrived struct {
	ports.QueuedCall
	stored time.Time
}

// run folds a queue until it falls to another replica, or something fails.
func (q *Queue) run(ctx context.Context, i int, fold fold) error {
	w := &worker{Queue: q, i: i, fold: fold, calls: make(chan arrived, waiting)}
	if err := w.open(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reading, err := w.read(ctx)
	if err != nil {
		return err
	}
	defer reading.Stop()
	tick := time.NewTicker(q.config.Heartbeat / 2)
	defer tick.Stop()
	for stuck := 0; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case first := <-w.calls:
			stuck = 0
			if err := w.foldAll(ctx, w.gather(first)); err != nil {
				return err
			}
		case <-tick.C:
			if !q.mine(i) {
				return nil
			}
			pending, err := w.purgeFolded(ctx)
			if err != nil {
				return err
			}
			if stuck++; pending == 0 || len(w.calls) > 0 {
				stuck = 0
			}
			if stuck > deadAfter {
				return fmt.Errorf("queue %d has %d messages that do not come", i, pending)
			}
		}
	}
}

// errStream is returned when a stream is not the one that was read.
var errStream = errors.New("the stream was made anew")

// open looks up the stream and the position up to which it is folded.
func (w *worker) open(ctx context.Context) (err error) {
	within, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if w.stream, err = w.Queue.stream(within, w.i); err != nil {
		return err
	}
	info := w.stream.CachedInfo()
	w.id = strconv.FormatInt(info.Created.UnixMicro(), 36)
	at, err := w.fold(ctx, ports.QueuedCalls{Queue: w.queue(), Stream: w.id})
	if err != nil {
		return fmt.Errorf("read the cursor of queue %d: %w", w.i, err)
	}
	w.at = at.Seq
	w.announce(w.i, at)
	if info.State.LastSeq < w.at {
		w.log.Error("the telemetry queue has fewer messages than were folded of it: its server lost some",
			"queue", w.i, "folded", w.at, "last", info.State.LastSeq)
	}
	return nil
}

func (w *worker) queue() string { return strconv.Itoa(w.i) }

// read has messages delivered to calls, from the one after the cursor on.
func (w *worker) read(ctx context.Context) (jetstream.ConsumeContext, error) {
	within, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	consumer, err := w.stream.OrderedConsumer(within, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: w.at + 1, InactiveThreshold: 30 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("read queue %d: %w", w.i, err)
	}
	reading, err := consumer.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil {
			return // no message of a stream
		}
		select {
		case w.calls <- arrived{ports.QueuedCall{Seq: meta.Sequence.Stream, Body: m.Data()}, meta.Timestamp}:
		case <-ctx.Done():
		}
	}, jetstream.PullMaxMessages(waiting))
	if err != nil {
		return nil, fmt.Errorf("read queue %d: %w", w.i, err)
	}
	return reading, nil
}

// gather returns a message and those that wait behind it, as many as a fold gets.
func (w *worker) gather(first arrived) []arrived {
	list, size := []arrived{first}, len(first.Body)
	for len(list) < maxCalls && size < maxCallBytes {
		select {
		case next := <-w.calls:
			list, size = append(list, next), size+len(next.Body)
		default:
			return list
		}
	}
	return list
}

// foldAll folds messages: together, or each alone if that fails for a reason of one of them.
func (w *worker) foldAll(ctx context.Context, list []arrived) error {
	if list[0].Seq > w.at+1 { // what is between may have been folded and purged by another replica
		if err := w.try(ctx, nil); err != nil {
			return err
		}
	}
	var calls []ports.QueuedCall
	next := w.at + 1
	for _, a := range list {
		if a.Seq < next { // it was read again
			w.metrics.again.Inc()
			continue
		}
		if a.Seq > next {
			w.metrics.missing.Inc()
			w.log.Error("messages of the telemetry queue are gone before they were folded", "queue", w.i,
				"from", next, "to", a.Seq-1)
		}
		calls, next = append(calls, a.QueuedCall), a.Seq+1
	}
	if len(calls) == 0 {
		return nil
	}
	w.metrics.oldest(w.i, list[0].stored)
	err := w.try(ctx, calls)
	if err == nil || !isPoison(err) {
		return err
	}
	for _, c := range calls {
		if err := w.foldAlone(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// isPoison reports whether a fold failed for a reason of what it got.
func isPoison(err error) bool {
	return !errors.Is(err, domain.ErrUnavailable) && !errors.Is(err, context.Canceled) &&
		!errors.Is(err, context.DeadlineExceeded)
}

// foldAlone folds a message, and sets it aside if that does not work.
func (w *worker) foldAlone(ctx context.Context, c ports.QueuedCall) (err error) {
	for range attempts {
		if err = w.try(ctx, []ports.QueuedCall{c}); err == nil || !isPoison(err) {
			return err
		}
		if !wait(ctx, w.shortPause()) {
			return ctx.Err()
		}
	}
	if err := w.try(ctx, nil); err != nil { // it is the store that fails
		return err
	}
	w.log.Error("a message of the telemetry queue cannot be folded, and is set aside", "queue", w.i, "number", c.Seq,
		"parked", parkedStream, "err", err)
	if err := w.park(ctx, w.i, c); err != nil {
		return err
	}
	w.metrics.parked.Inc()
	return w.try(ctx, []ports.QueuedCall{{Seq: c.Seq}})
}

// try folds messages once.
func (w *worker) try(ctx context.Context, calls []ports.QueuedCall) error {
	began := time.Now()
	at, err := w.fold(ctx, ports.QueuedCalls{Queue: w.queue(), Stream: w.id, Calls: calls})
	if err != nil {
		return fmt.Errorf("fold queue %d: %w", w.i, err)
	}
	w.metrics.folds.Observe(time.Since(began).Seconds())
	w.at = max(w.at, at.Seq)
	w.announce(w.i, at)
	return nil
}

// purgeFolded purges what is folded, and returns how many messages are not.
func (w *worker) purgeFolded(ctx context.Context) (pending uint64, err error) {
	within, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	info, err := w.stream.Info(within)
	if err != nil {
		return 0, fmt.Errorf("look at queue %d: %w", w.i, err)
	}
	if strconv.FormatInt(info.Created.UnixMicro(), 36) != w.id {
		return 0, errStream
	}
	if info.State.LastSeq > w.at {
		pending = info.State.LastSeq - w.at
	}
	w.metrics.pending(w.i, pending)
	if w.at > w.purged && info.State.FirstSeq <= w.at {
		if err := w.stream.Purge(within, jetstream.WithPurgeSequence(w.at+1)); err != nil {
			return 0, fmt.Errorf("purge queue %d: %w", w.i, err)
		}
	}
	w.purged = w.at
	return pending, nil
}
