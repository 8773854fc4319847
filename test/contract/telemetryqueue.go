package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/ports"
)

// QueueWorld is a server of a ports.TelemetryQueue under test.
type QueueWorld struct {
	// Open returns the client of another replica, which ends with the test. It refuses a call that the server
	// does not take within attempt.
	Open func(attempt time.Duration) ports.TelemetryQueue
	// Kill ends a replica's client as a crash does.
	Kill func(ports.TelemetryQueue)
	// Stop and Run stop the server and start it again with what it has.
	Stop, Run func()
}

// long is more than any machine needs for what is waited for.
const long = 5 * time.Minute

// TelemetryQueue holds a ports.TelemetryQueue to its promises. Open returns one whose queues are empty.
func TelemetryQueue(t *testing.T, open func(t *testing.T) QueueWorld) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, w QueueWorld)
	}{
		{"calls are folded once, an agent's in order, and every replica is notified", queueKeepsOrder},
		{"what was stored before a replica died is folded by another", queueSurvivesReplica},
		{"a fold whose answer is lost is not repeated", queueFoldsOnce},
		{"a call that cannot be folded is set aside, and the others are folded", queueSetsAside},
		{"a store that is away is waited for, and nothing is set aside", queueWaitsForStore},
		{"without its server a call is refused, and what was stored is folded afterwards", queueSurvivesServer},
	} {
		t.Run(c.name, func(t *testing.T) { t.Parallel(); c.test(t, open(t)) })
	}
}

// folder is a store that folds calls into lists, by queue.
type folder struct {
	mu    sync.Mutex
	at    map[string]ports.FoldCursor
	calls map[string][]string
	// before and after may fail a fold, before it is committed or after that.
	before func(ports.QueuedCalls) error
	after  func(ports.QueuedCalls) error
}

func newFolder() *folder {
	return &folder{at: map[string]ports.FoldCursor{}, calls: map[string][]string{}}
}

func (f *folder) fold(_ context.Context, in ports.QueuedCalls) (ports.FoldCursor, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		if err := f.before(in); err != nil {
			return ports.FoldCursor{}, err
		}
	}
	at := f.at[in.Queue]
	if at.Stream != in.Stream {
		at = ports.FoldCursor{Stream: in.Stream}
	}
	for _, c := range in.Calls {
		if c.Seq <= at.Seq {
			continue
		}
		at.Seq = c.Seq
		if c.Body != nil {
			f.calls[in.Queue] = append(f.calls[in.Queue], string(c.Body))
		}
	}
	f.at[in.Queue] = at
	if f.after != nil {
		if err := f.after(in); err != nil {
			return ports.FoldCursor{}, err
		}
	}
	return at, nil
}

// folded returns the calls of an agent that were folded, in order.
func (f *folder) folded(agent string) (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, calls := range f.calls {
		for _, c := range calls {
			if of, _, _ := cutCall(c); of == agent {
				list = append(list, c)
			}
		}
	}
	return list
}

func cutCall(c string) (agent string, n int, err error) {
	_, err = fmt.Sscanf(c, "%s %d", &agent, &n)
	return agent, n, err
}

// consume has a replica fold until the test ends, or until the returned function is called.
func consume(t *testing.T, q ports.TelemetryQueue, f *folder) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { q.Consume(ctx, f.fold) })
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

// publishCalls stores calls of an agent, numbered from a number on, and returns them and the last place.
func publishCalls(t *testing.T, q ports.TelemetryQueue, agent string, from, n int) (calls []string, last ports.QueuePlace) {
	t.Helper()
	for i := range n {
		call := fmt.Sprint(agent, " ", from+i)
		place, err := q.Publish(t.Context(), agent, []byte(call))
		if err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		calls, last = append(calls, call), place
	}
	return calls, last
}

// await waits until a place is folded.
func await(t *testing.T, q ports.TelemetryQueue, at ports.QueuePlace) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	if !q.Folded(ctx, at) {
		t.Fatalf("place %+v is not folded", at)
	}
}

func wantCalls(t *testing.T, f *folder, agent string, want []string) {
	t.Helper()
	if got := f.folded(agent); !slices.Equal(got, want) {
		t.Errorf("of %s are folded %q, want %q", agent, got, want)
	}
}

func queueKeepsOrder(t *testing.T, w QueueWorld) {
	a, b, f := w.Open(long), w.Open(long), newFolder()
	calls, last := publishCalls(t, a, "agt_early", 0, 3)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if a.Folded(ended, last) {
		t.Error("a call counts as folded, and nothing folds")
	}
	consume(t, a, f)
	consume(t, b, f)
	await(t, a, last)
	wantCalls(t, f, "agt_early", calls)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			agent := fmt.Sprint("agt_", i)
			calls, last := publishCalls(t, []ports.TelemetryQueue{a, b}[i%2], agent, 0, 20)
			await(t, a, last)
			await(t, b, last)
			wantCalls(t, f, agent, calls)
		})
	}
	wg.Wait()
}

func queueSurvivesReplica(t *testing.T, w QueueWorld) {
	a, b, f := w.Open(long), w.Open(long), newFolder()
	consume(t, a, f)
	consume(t, b, f)
	var want [8][]string
	for i := range want {
		want[i], _ = publishCalls(t, a, fmt.Sprint("agt_", i), 0, 5)
	}
	w.Kill(a)
	for i := range want {
		more, last := publishCalls(t, b, fmt.Sprint("agt_", i), 5, 5)
		await(t, b, last)
		wantCalls(t, f, fmt.Sprint("agt_", i), append(want[i], more...))
	}
}

func queueFoldsOnce(t *testing.T, w QueueWorld) {
	q, f := w.Open(long), newFolder()
	lost := 0
	f.after = func(in ports.QueuedCalls) error {
		if len(in.Calls) == 0 || lost == 3 {
			return nil
		}
		lost++
		return domain.ErrUnavailable
	}
	calls, last := publishCalls(t, q, "agt_1", 0, 10)
	consume(t, q, f)
	await(t, q, last)
	more, last := publishCalls(t, q, "agt_1", 10, 10)
	await(t, q, last)
	wantCalls(t, f, "agt_1", append(calls, more...))
	if lost == 0 {
		t.Error("no answer was lost")
	}
}

func queueSetsAside(t *testing.T, w QueueWorld) {
	q, f := w.Open(long), newFolder()
	f.before = func(in ports.QueuedCalls) error {
		for _, c := range in.Calls {
			if string(c.Body) == "agt_1 3" {
				return errors.New("it has a fault")
			}
		}
		return nil
	}
	calls, last := publishCalls(t, q, "agt_1", 0, 7)
	consume(t, q, f)
	await(t, q, last)
	wantCalls(t, f, "agt_1", slices.Delete(calls, 3, 4))
}

func queueWaitsForStore(t *testing.T, w QueueWorld) {
	q, f := w.Open(long), newFolder()
	failures := 0
	f.before = func(in ports.QueuedCalls) error {
		failures++
		switch {
		case failures <= 4:
			return domain.ErrUnavailable
		case failures <= 12: // a failure that is not known to be the store's, and is
			return errors.New("the disk is full")
		}
		return nil
	}
	calls, last := publishCalls(t, q, "agt_1", 0, 5)
	consume(t, q, f)
	await(t, q, last)
	wantCalls(t, f, "agt_1", calls)
}

func queueSurvivesServer(t *testing.T, w QueueWorld) {
	q, f := w.Open(long), newFolder()
	calls, _ := publishCalls(t, q, "agt_1", 0, 5)
	hasty := w.Open(100 * time.Millisecond)
	w.Stop()
	if _, err := hasty.Publish(t.Context(), "agt_1", []byte("agt_1 5")); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("without a server: %v", err)
	}
	w.Run()
	consume(t, q, f)
	var last ports.QueuePlace
	for err := error(domain.ErrUnavailable); err != nil; { // until it is connected again
		if last, err = q.Publish(t.Context(), "agt_1", []byte("agt_1 6")); err != nil && !errors.Is(err, domain.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	await(t, q, last)
	wantCalls(t, f, "agt_1", append(calls, "agt_1 6"))
}
