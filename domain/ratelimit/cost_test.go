package ratelimit_test

import (
	"testing"

	"agentproxy/domain/ratelimit"
)

func TestBeyond(t *testing.T) {
	for items, want := range map[int]int{-1: 0, 0: 0, 1: 0, 25: 0, 26: 1, 50: 1, 51: 2, 100: 3, 1000: 39} {
		if got := ratelimit.Beyond(items); got != want {
			t.Errorf("%d items cost %d beyond the call, want %d", items, got, want)
		}
	}
}
