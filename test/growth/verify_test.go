//go:build campaign

package growth_test

import (
	"testing"
	"time"

	"agentproxy/test/apptest"
)

// TestVerifyOfALargeLedger prints what an entry costs that is in no sealed month, of which every table was counted.
func TestVerifyOfALargeLedger(t *testing.T) {
	w := apptest.Open(t, apptest.Options{Database: database(t)})
	numbers(w, max(*large, *each))
	fill(w, *large, lives)
	for range *others {
		fill(w, *each, lives)
	}
	for range 3 {
		apptest.OK(t, w.DB.SumUp(t.Context()))
		w.Clock.Advance(time.Minute)
	}
	for more := true; more; {
		var err error
		_, more, err = w.DB.ProveNew(t.Context())
		apptest.OK(t, err)
	}
	vacuum(w)
	for range *rounds {
		began := time.Now()
		faults, entries, err := w.DB.Verify(t.Context())
		took := time.Since(began)
		if err != nil || len(faults) > 0 {
			t.Errorf("%d faults: %+v, %v", len(faults), faults[:min(3, len(faults))], err)
		}
		t.Logf("%d entries verified in %s: %s an entry", entries, took.Round(time.Millisecond), took/time.Duration(max(entries, 1)))
	}
	w.Exec("DROP TABLE growth_n")
}
