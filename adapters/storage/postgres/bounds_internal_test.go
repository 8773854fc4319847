package postgres

import (
	"testing"
	"time"
)

// What is waited for a connection and for a unit is never shorter than without settings.
func TestBoundsAreAtLeastTheDefaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dial, statement, patience, unit time.Duration }{
		{0, 0, 2 * time.Second, 6 * time.Second},
		{time.Second, 100 * time.Millisecond, 2 * time.Second, 6 * time.Second},
		{4 * time.Second, 20 * time.Second, 4 * time.Second, 21 * time.Second},
		{5 * time.Minute, 2 * time.Minute, 5 * time.Minute, 2*time.Minute + time.Second},
	} {
		if patience, unit := bounds(c.dial, c.statement); patience != c.patience || unit != c.unit {
			t.Errorf("%+v: a connection is waited for for %v, a unit has %v", c, patience, unit)
		}
	}
}
