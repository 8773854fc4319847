package ratelimit_test

import (
	"testing"
	"time"

	"agentproxy/domain/ratelimit"
)

// Of sixteen parts of a day, the state gives fifteen at once and no more than two others until its end.
func TestThePartsOfADay(t *testing.T) {
	d := ratelimit.Daily(50_000_000)
	if d.Part() != 3_125_000 || ratelimit.Daily(1).Part() != 1 {
		t.Errorf("parts of %d and %d", d.Part(), ratelimit.Daily(1).Part())
	}
	midnight := start.Truncate(24 * time.Hour)
	var s ratelimit.State
	given, atOnce := 0, 0
	for minute := range 24 * 60 {
		var g ratelimit.Grant
		s, g = d.NewRequest(1).TakeFrom(s, midnight.Add(time.Duration(minute)*time.Minute))
		if given += g.Tokens; minute == 14 {
			atOnce = given
		}
	}
	if atOnce != 15 || given < 15 || given > 17 {
		t.Errorf("%d parts at once, %d in the day", atOnce, given)
	}
	for amount, want := range map[int64]int{-1: 1, 0: 1, 1: 1, 3_125_000: 1, 3_125_001: 2, 1 << 50: 15} {
		if got := d.NewRequest(amount).Tokens; got != want {
			t.Errorf("%d parts for %d bytes, want %d", got, amount, want)
		}
	}
}

func TestTheRestOfADay(t *testing.T) {
	midnight := start.Truncate(24 * time.Hour)
	before, _ := ratelimit.Day(midnight.Add(-time.Microsecond))
	day, left := ratelimit.Day(midnight)
	if before+1 != day || left != 24*time.Hour {
		t.Errorf("day %d after %d, with %v", day, before, left)
	}
	if _, left = ratelimit.Day(midnight.Add(24*time.Hour - time.Microsecond)); left != time.Second {
		t.Errorf("%v are left at the end", left)
	}
}
