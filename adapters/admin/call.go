package admin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// work is a group of background goroutines: checks and reads that may outlive the
// request that started them.
type work struct {
	ctx     context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup
}

func newWork() *work {
	w := &work{}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

var errStopped = errors.New("admin: stopped")

// start runs f in the background, unless the work is stopped.
func (w *work) start(f func(context.Context)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return errStopped
	}
	w.running.Go(func() { f(w.ctx) })
	return nil
}

// stop cancels all goroutines and waits for them, at most until the context ends.
func (w *work) stop(ctx context.Context) error {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.cancel()
	done := make(chan struct{})
	go func() {
		w.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("admin: a check or a read does not return: %w", ctx.Err())
	}
}

// call runs a function once at a time: concurrent callers share the result of the
// run. So neither many callers nor a function that hangs accumulate goroutines.
type call[T any] struct {
	work    *work
	mu      sync.Mutex
	current *run[T]
}

type run[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// errTimeout is the error of a run that exceeded its timeout.
var errTimeout = errors.New("no answer in time")

// do runs f and returns its result. It returns errTimeout after the timeout or when
// ctx ends, even if f ignores its context.
func (c *call[T]) do(ctx context.Context, timeout time.Duration,
	f func(context.Context) (T, error)) (value T, err error) {
	c.mu.Lock()
	r := c.current
	if r == nil {
		r = &run[T]{done: make(chan struct{})}
		err := c.work.start(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			r.value, r.err = guarded(ctx, f)
			c.mu.Lock()
			c.current = nil
			c.mu.Unlock()
			close(r.done)
		})
		if err != nil {
			c.mu.Unlock()
			return value, err
		}
		c.current = r
	}
	c.mu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-r.done:
		if errors.Is(r.err, context.DeadlineExceeded) {
			return value, errTimeout
		}
		return r.value, r.err
	case <-timer.C:
		return value, errTimeout
	case <-ctx.Done():
		return value, errTimeout
	}
}

// guarded runs f and returns a panic as an error: the process has other work.
func guarded[T any](ctx context.Context, f func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f(ctx)
}
