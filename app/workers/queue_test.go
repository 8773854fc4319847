package workers

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/domain/worker"
)

// A thousand first uses a second cost a unit of work each ten milliseconds, and each is answered once.
func TestFirstUsesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		units, asked := 0, 0
		q := queue{run: func(_ context.Context, requests []request) []result {
			units++
			asked += len(requests)
			results := make([]result, len(requests))
			for i, r := range requests {
				results[i].worker.Name = r.words.Name
			}
			time.Sleep(time.Millisecond)
			return results
		}}
		const uses = 1000
		answers := make(chan string, uses)
		began := time.Now()
		for i := range uses {
			go func() {
				name := fmt.Sprintf("w%d", i)
				w, err := q.use(t.Context(), request{words: worker.Parameters{Name: name}})
				if err != nil || w.Name != name {
					t.Errorf("%s got %q, %v", name, w.Name, err)
				}
				answers <- w.Name
			}()
			time.Sleep(time.Second / uses)
		}
		for range uses {
			<-answers
		}
		took := time.Since(began)
		if most := int(took/useEvery) + 1; units > most || asked != uses {
			t.Errorf("%d units for %d uses in %v, at most %d", units, asked, took, most)
		}
		t.Logf("%d units for %d uses in %v", units, asked, took)
		synctest.Wait()
		time.Sleep(2 * useEvery)
	})
}
