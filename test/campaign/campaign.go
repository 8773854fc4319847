// Package campaign sets the size of the tests that repeat kills, faults and seeds.
// By default they make one small round; with the build tag campaign, which
// .ci/campaign sets, they make all of them.
package campaign

import (
	"flag"
	"math/rand/v2"
	"testing"
)

// Rounds returns how often a test repeats: small by default, full in a campaign.
func Rounds(small, full int) int {
	if tagged {
		return full
	}
	return small
}

var seed = flag.Uint64("seed", 1, "seed of the moments, choices and faults of a campaign")

// Seed returns the seed of a test, and logs how to set it again.
func Seed(t testing.TB) uint64 {
	t.Helper()
	t.Logf("repeat with -seed=%d", *seed)
	return *seed
}

// Rand returns the random numbers of a test. Streams of different numbers are
// independent.
func Rand(t testing.TB, stream uint64) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), stream))
}
