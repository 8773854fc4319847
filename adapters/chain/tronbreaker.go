package chain

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// maxDoubled bounds how often a pause doubles, to 64 times the first.
const maxDoubled = 6

// breaker is a circuit breaker for a source. Each failure in a row doubles the
// pause; after the pause one call probes the source while the others are still
// refused. During an outage the source gets about one call a minute, and its
// end causes no burst of calls.
type breaker struct {
	pause time.Duration // after the first failure
	floor time.Duration // after a suspension of unknown length

	mu       sync.Mutex
	failures int // in a row
	until    time.Time
	probing  bool
}

var errProbing = errors.New("the source failed; another call is probing it")

// check returns the reason why calls are refused, or nil.
func (g *breaker) check() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refusal()
}

func (g *breaker) refusal() error {
	if left := time.Until(g.until); left > 0 {
		return fmt.Errorf("the source failed %d times and is left alone for another %s", g.failures,
			left.Round(time.Millisecond))
	}
	if g.probing {
		return errProbing
	}
	return nil
}

// acquire admits a call, which must end in succeeded, failed or release.
func (g *breaker) acquire() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.refusal(); err != nil {
		return err
	}
	g.probing = g.failures > 0
	return nil
}

func (g *breaker) succeeded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	// A response to a call that began before a suspension does not end it.
	if time.Until(g.until) <= 0 {
		g.failures, g.probing = 0, false
	}
}

func (g *breaker) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probing = false
}

// failed opens the breaker and returns for how long, at least for a suspension.
// Random jitter keeps replicas apart.
func (g *breaker) failed(suspended time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if !g.until.After(now) { // concurrent failures count once
		g.failures++
	}
	pause := max(g.pause<<min(g.failures-1, maxDoubled), suspended)
	pause += rand.N(pause/4 + 1)
	if until := now.Add(pause); until.After(g.until) {
		g.until = until
	}
	g.probing = false
	return pause
}
