package value

import (
	"testing"
	"time"
)

func TestNumbersOfARequest(t *testing.T) {
	t.Parallel()
	for text, want := range map[Decimal]int{"2": 2, "2.0": 2, "1e2": 100, "1.5": -1, "null": -1, "1e400": -1} {
		if got := text.Integer(); got == nil || *got != want {
			t.Errorf("%s is %v, want %d", text, got, want)
		}
	}
	for text, want := range map[Decimal]time.Duration{"10": 10 * time.Second, "9e17": 86401 * time.Second, "0.5": -time.Second} {
		if got := text.Seconds(); got == nil || *got != want {
			t.Errorf("%s seconds are %v, want %v", text, got, want)
		}
	}
	if Decimal("").Integer() != nil || Decimal("").Bytes() != nil || Decimal("").Money() != nil ||
		Decimal("null").Seconds() != nil {
		t.Error("an absent number is given")
	}
}
