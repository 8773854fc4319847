package lograte_test

import (
	"strconv"
	"testing"
	"time"

	"agentproxy/adapters/lograte"
)

// What happens often is logged in part, with how much was left out.
func TestOfEachKeySomeRecordsPass(t *testing.T) {
	t.Parallel()
	l := lograte.New(3, time.Second)
	now := time.Unix(1_700_000_000, 0)
	for i, c := range []struct {
		key                      string
		after                    time.Duration
		records, passed, leftOut int
	}{{"a", 0, 3, 3, 0}, {"a", time.Second, 10, 3, 0}, {"b", 0, 4, 3, 0}, {"a", time.Second, 2, 2, 7},
		{"a", time.Millisecond, 2, 1, 0}, {"a", -time.Hour, 1, 1, 1}, {"b", time.Hour, 1, 1, 1}} {
		now = now.Add(c.after)
		passed, leftOut := 0, 0
		for range c.records {
			if l.Allow(c.key, now) {
				passed++
			}
			leftOut += l.LeftOut(c.key, now)
		}
		if passed != c.passed || leftOut != c.leftOut {
			t.Errorf("%d: of %d records %d are logged, and %d before were left out", i, c.records, passed, leftOut)
		}
	}
}

// What was left out is logged after its time, whatever comes then.
func TestWhatWasLeftOutIsKnownLater(t *testing.T) {
	t.Parallel()
	l := lograte.New(1, time.Second)
	now := time.Unix(1_700_000_000, 0)
	for range 4 {
		l.Allow("a", now)
	}
	for i, want := range []int{0, 3, 0} {
		if n := l.LeftOut("a", now.Add(time.Duration(i)*time.Second)); n != want {
			t.Errorf("after %d seconds %d were left out, want %d", i, n, want)
		}
	}
	if n := l.LeftOut("b", now); n != 0 {
		t.Errorf("%d of a key that is not known", n)
	}
}

// The keys are texts of records, of which there may be any number.
func TestKeysAreBounded(t *testing.T) {
	t.Parallel()
	l := lograte.New(1, time.Hour)
	now := time.Unix(1_700_000_000, 0)
	for i := range 1_000 {
		l.Allow(strconv.Itoa(i), now)
	}
	if !l.Allow("0", now) {
		t.Error("a thousand keys are remembered")
	}
	if l.Allow("999", now) {
		t.Error("the newest is not remembered")
	}
}
