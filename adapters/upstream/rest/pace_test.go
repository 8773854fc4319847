package rest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/fair"
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

// What 40 callers of one party do all the time, in creations and terminations, makes another wait
// for no more than twice its usual time, counted in calls of the pace. So do 31 accounts that registered from
// one network, which are one party, and 31 parties on trial, if the other has paid.
func TestCallsOfOthersDoubleATimeAtMost(t *testing.T) {
	const call = 200 * time.Millisecond // a call of the pace
	party := func(int) fair.Party { return fair.Party{Key: "198.51.100.0/24"} }
	parties := func(n int) fair.Party { return fair.Party{Key: fmt.Sprint("trial ", n)} }
	for _, c := range []struct {
		name   string
		pace   func() *rest.Pace
		calls  []bool // of a creation; true: it spends money
		others func(int) fair.Party
		victim fair.Party
	}{
		{"a funded one", func() *rest.Pace { return rest.NewPace(5) }, []bool{false, true}, party, fair.Party{Key: "v", Funded: true}},
		{"one on trial", func() *rest.Pace { return rest.NewPace(5) }, []bool{false, true}, party, fair.Party{Key: "v"}},
		{"four calls", func() *rest.Pace { return rest.NewPace(5) }, []bool{false, false, false, true}, party, fair.Party{Key: "v"}},
		{"money more slowly", func() *rest.Pace { return rest.NewPace(5).Slower(2.5) }, []bool{false, false, true}, party, fair.Party{Key: "v"}},
		{"reads beside money", func() *rest.Pace { return rest.NewPace(5).Slower(2.5) }, []bool{false, false}, party, fair.Party{Key: "v"}},
		{"31 parties", func() *rest.Pace { return rest.NewPace(5) }, []bool{false, false, true}, parties, fair.Party{Key: "v", Funded: true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := c.pace()
			create := func() time.Duration {
				began := time.Now()
				for _, money := range c.calls {
					if err := p.Wait(ports.WithParty(t.Context(), c.victim), money); err != nil {
						t.Error(err)
					}
					time.Sleep(5 * time.Millisecond) // the seller's answer
				}
				return time.Since(began)
			}
			alone := create()
			time.Sleep(10 * time.Second)
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for n := range 40 {
				wg.Go(func() {
					for i := 0; p.Wait(ports.WithParty(ctx, c.others(n%31)), i%3 == 1) == nil; i++ {
						time.Sleep(5 * time.Millisecond)
					}
				})
			}
			for n := range 10 {
				time.Sleep(8*time.Second + time.Duration(n)*37*time.Millisecond)
				// The rest is for the answers.
				if took := create(); took > 2*alone+call/50 {
					t.Errorf("%s: %.2f calls of the pace, alone %.2f", c.name, took.Seconds()/call.Seconds(), alone.Seconds()/call.Seconds())
				}
			}
			stop()
			wg.Wait()
			time.Sleep(time.Second) // the turn of calls that were given up
		})
	}
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
