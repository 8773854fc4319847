package rest_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/ports"
)

func TestCallsAreThatFarApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rest.NewPace(5)
		began := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := p.Wait(t.Context(), false); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took != 9*200*time.Millisecond {
			t.Errorf("10 calls started within %s", took)
		}
	})
}

// An agent whose 40 calls always wait delays each call of another by one.
func TestAnAgentWithManyCallsDelaysAnotherByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rest.NewPace(5)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				for p.Wait(ports.OnBehalf(ctx, "many"), false) == nil {
				}
			})
		}
		time.Sleep(time.Second)
		began := time.Now()
		for range 5 {
			if err := p.Wait(ports.OnBehalf(ctx, "one"), false); err != nil {
				t.Error(err)
			}
		}
		// Alone they take 0.8 s, the first of them at once.
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("5 calls of another agent took %s", took)
		}
		stop()
		wg.Wait()
		time.Sleep(time.Second) // the turn of calls that were given up
	})
}

func TestACallThatCannotStartInTimeFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rest.NewPace(1).Slower(0.5)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		var mu sync.Mutex
		started := 0
		for range 10 { // at 0, 2 and 4 s
			wg.Go(func() {
				began := time.Now()
				err := p.Wait(ctx, true)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					started++
				} else if took := time.Since(began); took > 0 {
					t.Errorf("it took %s to fail", took)
				}
			})
		}
		wg.Wait()
		if started != 3 {
			t.Errorf("%d started, want 3", started)
		}
	})
}

// A call that was given up takes no turn of those that wait.
func TestACallThatWasGivenUpTakesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rest.NewPace(1)
		_ = p.Wait(t.Context(), false)
		gone, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { _ = p.Wait(gone, false) })
		}
		synctest.Wait()
		began := time.Now()
		wg.Go(func() { _ = p.Wait(t.Context(), false) })
		synctest.Wait()
		cancel()
		wg.Wait()
		if took := time.Since(began); took != time.Second {
			t.Errorf("it waited %s", took)
		}
	})
}
