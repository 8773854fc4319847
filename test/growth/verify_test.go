//go:build campaign

package growth_test

import (
	"syscall"
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
		began, used := time.Now(), processor(t)
		faults, entries, err := w.DB.Verify(t.Context())
		took, cost := time.Since(began), processor(t)-used
		if err != nil || len(faults) > 0 {
			t.Errorf("%d faults: %+v, %v", len(faults), faults[:min(3, len(faults))], err)
		}
		n := time.Duration(max(entries, 1))
		t.Logf("%d entries verified in %s: %s an entry, %s of processor time in this process", entries, took.Round(time.Millisecond),
			took/n, cost/n)
	}
	w.Exec("DROP TABLE growth_n")
}

// processor returns how much processor time the process has used, which other processes change less than the time it took.
func processor(t *testing.T) time.Duration {
	var u syscall.Rusage
	apptest.OK(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
