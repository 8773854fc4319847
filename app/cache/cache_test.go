package cache_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"agentproxy/app/cache"
	"agentproxy/test/apptest"
)

func TestOfCallersAtOnceOneLoads(t *testing.T) {
	t.Parallel()
	c := cache.New(cache.Bounds[string, int]{Most: 10})
	var loads atomic.Int64
	arrived := make(chan struct{})
	load := func(context.Context, string) (int, error) {
		loads.Add(1)
		<-arrived // the others find this load under way, or its value
		return 7, nil
	}
	var callers atomic.Int64
	apptest.Concurrently(20, func(int) {
		if callers.Add(1) == 20 {
			close(arrived)
		}
		if v, err := c.Load(t.Context(), "a", load); v != 7 || err != nil {
			t.Errorf("got %d, %v", v, err)
		}
	})
	if n := loads.Load(); n != 1 {
		t.Errorf("%d loads", n)
	}
}

// A load that began before a change may have read what was before it.
func TestWhatIsInvalidatedWhileItIsLoadedIsNotKept(t *testing.T) {
	t.Parallel()
	c := cache.New(cache.Bounds[string, int]{Most: 10})
	loads := 0
	_, err := c.Load(t.Context(), "a", func(context.Context, string) (int, error) {
		if loads++; loads == 1 {
			c.Invalidate("a")
		}
		return loads, nil
	})
	if err != nil {
		t.Error(err)
	}
	if v, kept := c.GetIfPresent("a"); kept && v == 1 {
		t.Error("the value of the first load is kept")
	}
}

func TestAnErrorIsNotKept(t *testing.T) {
	t.Parallel()
	c := cache.New(cache.Bounds[string, int]{Most: 10})
	failed := errors.New("failed")
	if _, err := c.Load(t.Context(), "a", func(context.Context, string) (int, error) { return 0, failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if v, err := c.Load(t.Context(), "a", func(context.Context, string) (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
}
