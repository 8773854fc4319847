package chain

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// maxDoubled bounds how often a pause doubles: 64 times the first.
const maxDoubled = 6

// gate keeps calls away from a source that fails. Each failure in a row doubles
// the pause; after it one call finds out how the source is while the others are
// still refused. So an outage costs the source a call a minute, and its end
// brings no storm.
type breaker struct {
	pause time.Duration // after the first failure
	floor time.Duration // after a suspension, at least

	mu       sync.Mutex
	failures int // in a row
	until    time.Time
	probing  bool
}

var errProbing = errors.New("the source failed; another call is finding out how it is")

// closed says why a call need not even wait for its turn.
func (g *breaker) check() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refusal()
}

func (g *breaker) refusal() error {
	if left := time.Until(g.until); left > 0 {
		return fmt.Errorf("the source failed %d times and is left alone for another %s", g.failures, left.Round(time.Millisecond))
	}
	if g.probing {
		return errProbing
	}
	return nil
}

// enter admits a call, which ends in succeeded, failed or left.
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
	// An answer that was under way when another call was suspended does not end
	// the suspension.
	if time.Until(g.until) <= 0 {
		g.failures, g.probing = 0, false
	}
}

func (g *breaker) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probing = false
}

// failed closes the gate and returns for how long. Chance keeps replicas apart.
func (g *breaker) failed(suspended bool) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if !g.until.After(now) { // those that fail together count once
		g.failures++
	}
	pause := g.pause << min(g.failures-1, maxDoubled)
	if suspended {
		pause = max(pause, g.floor)
	}
	pause += rand.N(pause/4 + 1)
	if until := now.Add(pause); until.After(g.until) {
		g.until = until
	}
	g.probing = false
	return pause
}
