package httpapi

import (
	"testing"
	"time"
)

func TestNumbersOfARequest(t *testing.T) {
	t.Parallel()
	for text, want := range map[decimal]int{"2": 2, "2.0": 2, "1e2": 100, "1.5": -1, "null": -1, "1e400": -1} {
		if got := text.integer(); got == nil || *got != want {
			t.Errorf("%s is %v, want %d", text, got, want)
		}
	}
	for text, want := range map[decimal]time.Duration{"10": 10 * time.Second, "9e17": 86401 * time.Second, "0.5": -time.Second} {
		if got := text.seconds(); got == nil || *got != want {
			t.Errorf("%s seconds are %v, want %v", text, got, want)
		}
	}
	if decimal("").integer() != nil || decimal("").bytes() != nil || decimal("").money() != nil ||
		decimal("null").seconds() != nil {
		t.Error("an absent number is given")
	}
}
