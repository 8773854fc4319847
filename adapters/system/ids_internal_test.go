package system

import (
	"bytes"
	"testing"
)

func TestIDsOfASpanAreNeighbours(t *testing.T) {
	first, last := [idBytes]byte{}, [idBytes]byte(bytes.Repeat([]byte{0xff}, idBytes))
	if id := newID("sess_", 0, first); id != "sess_00000000000000000000" {
		t.Errorf("the least id is %s", id)
	}
	for span := range uint64(spans) {
		low, high := newID("sess_", span, first), newID("sess_", span, last)
		if low >= high || len(high) != len("sess_")+idLength {
			t.Errorf("span %d has ids from %s to %s", span, low, high)
		}
		if next := newID("sess_", span+1, first); span+1 < spans && next <= high {
			t.Errorf("span %d ends with %s, the next begins with %s", span, high, next)
		}
	}
	// Each of the random bits is shown.
	for bit := range idBytes * 8 {
		one := first
		one[bit/8] |= 1 << (bit % 8)
		if newID("", 7, one) == newID("", 7, first) {
			t.Errorf("bit %d makes no other id", bit)
		}
	}
}
