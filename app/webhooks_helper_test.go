package app_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"agentproxy/adapters/webhook"
	"agentproxy/domain"
	hooks "agentproxy/domain/webhook"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// receiver is the other side of a sender.
type receiver struct {
	clock   *fake.Clock
	mu      sync.Mutex
	answers []hooks.Outcome // of the next calls
	always  int             // the answer after them; 0: 204
	err     error           // of the sender itself
	got     []ports.Message
	busy    map[string]int // calls on their way, by URL
	most    int            // that there ever were at one URL
	hold    chan struct{}  // calls wait until it is closed
}

func (r *receiver) Body(e hooks.Event) []byte { return webhook.Body(e) }

func (r *receiver) Send(ctx context.Context, m ports.Message) (hooks.Outcome, error) {
	r.mu.Lock()
	if r.busy == nil {
		r.busy = map[string]int{}
	}
	r.busy[m.URL]++
	r.most = max(r.most, r.busy[m.URL])
	hold := r.hold
	r.mu.Unlock()
	if hold != nil && m.URL == slowHook {
		<-hold
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy[m.URL]--
	if r.err != nil {
		return hooks.Outcome{}, r.err
	}
	r.got = append(r.got, m)
	out := hooks.Outcome{StatusCode: cmp.Or(r.always, 204)}
	if len(r.answers) > 0 {
		out, r.answers = r.answers[0], r.answers[1:]
	}
	out.URL = m.URL
	return out, nil
}

// take empties what was received.
func (r *receiver) take() []ports.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

func (r *receiver) answer(codes ...int) {
	for _, code := range codes {
		r.answers = append(r.answers, hooks.Outcome{StatusCode: code})
	}
}

const slowHook = "https://slow.example/hook"

// try is the job of one attempt.
type try struct {
	n   string
	id  string
	due time.Time
}

// tries lists the jobs of deliveries that are not done yet.
func (w *world) tries() (list []try) {
	w.t.Helper()
	rows, err := w.db.Writer().Query(`SELECT n, session, due FROM test_jobs WHERE kind = $1 ORDER BY due, n`, ports.DeliverJob)
	ok(w.t, err)
	defer rows.Close()
	for rows.Next() {
		var t try
		var due int64
		ok(w.t, rows.Scan(&t.n, &t.id, &due))
		t.due = time.UnixMicro(due).UTC()
		list = append(list, t)
	}
	ok(w.t, rows.Err())
	return list
}

// deliver does every delivery job that is due; one that is put off stays.
func (w *world) deliver() error {
	w.t.Helper()
	var faults []error
	for _, t := range w.tries() {
		if t.due.After(w.clock.Now()) {
			continue
		}
		err := w.webhooks.Deliver(context.Background(), t.id, t.due)
		if err == nil {
			w.exec(`DELETE FROM test_jobs WHERE n = ?`, t.n)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// deliveries lists an agent's deliveries, newest first.
func (w *world) deliveries(agent string) []hooks.Delivery {
	w.t.Helper()
	list, err := w.webhooks.Deliveries(context.Background(), agent, "", domain.Page{Number: 1, Size: 100})
	ok(w.t, err)
	return list.Items
}
