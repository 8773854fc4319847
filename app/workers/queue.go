package workers

import (
	"context"
	"sync"
	"time"

	"agentproxy/app/fulfilment"
	"agentproxy/domain/worker"
)

// request asks for a worker that has to be made or changed before its use.
type request struct {
	sessionID string
	words     worker.Parameters
	exits     fulfilment.WorkerExits
	gone      *worker.Worker // as it was when its exit was found to be gone; nil if nothing was found
	turns     turns          // that were chosen for it
	keep      bool           // no other exit could be chosen: it keeps the one that it has
}

type result struct {
	worker worker.Worker
	err    error
}

const (
	// useEvery is the least time between two units of work that make workers: a fleet that starts
	// costs the store 100 units a second at most, however many names it has.
	useEvery = 10 * time.Millisecond
	// useAtOnce bounds the requests of one unit, useTimeout its time.
	useAtOnce  = 1000
	useTimeout = 5 * time.Second
)

// queue collects requests while a unit of work runs, and answers them with the next one.
type queue struct {
	run func(context.Context, []request) []result // one result for each request

	mu      sync.Mutex
	waiting []waiting
	running bool
}

type waiting struct {
	request
	answer chan result // with room for the answer
}

// use asks for a worker and waits for the answer until ctx ends.
func (q *queue) use(ctx context.Context, r request) (worker.Worker, error) {
	w := waiting{r, make(chan result, 1)}
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	if !q.running {
		q.running = true
		go q.answer()
	}
	q.mu.Unlock()
	select {
	case got := <-w.answer:
		return got.worker, got.err
	case <-ctx.Done():
		return worker.Worker{}, ctx.Err()
	}
}

// answer runs units of work until nothing waits.
func (q *queue) answer() {
	for {
		q.mu.Lock()
		batch := q.waiting[:min(len(q.waiting), useAtOnce)]
		q.waiting = q.waiting[len(batch):]
		if len(batch) == 0 {
			q.running, q.waiting = false, nil
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		began := time.Now()
		requests := make([]request, len(batch))
		for i, w := range batch {
			requests[i] = w.request
		}
		ctx, cancel := context.WithTimeout(context.Background(), useTimeout)
		for i, got := range q.run(ctx, requests) {
			batch[i].answer <- got
		}
		cancel()
		time.Sleep(useEvery - time.Since(began))
	}
}
