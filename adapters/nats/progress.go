package nats

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"agentproxy/ports"
)

// progress is the position up to which this replica has read that a queue is folded.
type progress struct {
	mu      sync.Mutex
	at      ports.FoldCursor
	changed chan struct{} // closed at the next change
}

// move notes that a queue is folded up to a place.
func (p *progress) move(at ports.FoldCursor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.Stream == p.at.Stream && at.Seq <= p.at.Seq {
		return
	}
	p.at = at
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *progress) now() (ports.FoldCursor, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at, p.changed
}

// Folded waits until a place is folded. Replicas that fold publish their progress to all.
func (q *Queue) Folded(ctx context.Context, place ports.QueuePlace) bool {
	p := &q.folded[place.Queue]
	for {
		at, changed := p.now()
		if at.Seq >= place.Seq {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			q.metrics.late.Inc()
			return false
		}
	}
}

// announce notes how far a queue is folded, and publishes it to the other replicas. A message that is
// lost on the way makes a caller wait until its timeout, and nothing else.
func (q *Queue) announce(i int, at ports.FoldCursor) {
	q.folded[i].move(at)
	_ = q.conn.Publish(foldedSubject+strconv.Itoa(i), []byte(at.Stream+" "+strconv.FormatUint(at.Seq, 10)))
}

// receiveFold handles the progress of another replica.
func (q *Queue) receiveFold(m *nats.Msg) {
	i, err := strconv.Atoi(strings.TrimPrefix(m.Subject, foldedSubject))
	stream, text, ok := strings.Cut(string(m.Data), " ")
	seq, notNumber := strconv.ParseUint(text, 10, 64)
	if err == nil && ok && notNumber == nil && i >= 0 && i < queues {
		q.folded[i].move(ports.FoldCursor{Stream: stream, Seq: seq})
	}
}
