package signin

import (
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/test/fake"
)

// The addresses of guesses are forgotten, so that many of them take little memory.
func TestAddressesOfGuessesAreForgotten(t *testing.T) {
	clock := fake.NewClock()
	g := New(Config{Secret: "the operator's own password"}, clock, slog.New(slog.DiscardHandler))
	for i := range 20_000 {
		at := netip.AddrFrom4([4]byte{198, byte(i >> 16), byte(i >> 8), byte(i)})
		if _, err := g.check(t.Context(), at, Operator, "a guess"); !errors.Is(err, errWrong) {
			t.Fatalf("guess %d: %v", i, err)
		}
		clock.Advance(time.Minute / guessesInAll)
		if n := len(g.byAddress); n > purgeFrom {
			t.Fatalf("%d addresses are held after %d guesses", n, i)
		}
	}
}

// Hashes that are computed at once, and those that wait for it, are bounded.
func TestHashesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHashing()
		release := make(chan struct{})
		var running, most, done, refused atomic.Int32
		for range 100 {
			go func() {
				err := h.do(t.Context(), func() error {
					if n := running.Add(1); n > most.Load() {
						most.Store(n)
					}
					<-release
					running.Add(-1)
					return nil
				})
				if err != nil {
					refused.Add(1)
				} else {
					done.Add(1)
				}
			}()
		}
		synctest.Wait()
		if running.Load() != hashesAtOnce || refused.Load() != 100-waitingHashes {
			t.Errorf("%d run and %d were refused", running.Load(), refused.Load())
		}
		close(release)
		synctest.Wait()
		if done.Load() != waitingHashes || most.Load() != hashesAtOnce {
			t.Errorf("%d were done, %d at once", done.Load(), most.Load())
		}
	})
}
