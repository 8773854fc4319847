package webhook_test

import (
	"fmt"
	"testing"
	"time"

	"agentproxy/domain/webhook"
)

// However many ask, a target has at most thirty requests in any hour, and another one its own; one that answers has
// as many as come.
func TestATargetHasThirtyTriesAnHour(t *testing.T) {
	t.Parallel()
	var tries webhook.Tries
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var made []time.Time
	for at := began; at.Before(began.Add(5 * time.Hour)); at = at.Add(10 * time.Second) {
		if tries.Wait("victim", at) == 0 {
			tries.Take("victim", at)
			made = append(made, at)
		}
	}
	for i := range made {
		if j := i + 30; j < len(made) && made[j].Sub(made[i]) < time.Hour {
			t.Fatalf("31 requests from %s to %s", made[i], made[j])
		}
	}
	if len(made) < 5*15 {
		t.Errorf("%d requests in five hours", len(made))
	}
	now := began.Add(5 * time.Hour)
	if wait := tries.Wait("other", now); wait != 0 {
		t.Errorf("another target waits for %s", wait)
	}
	for range 1000 {
		if wait := tries.Wait("good", now); wait != 0 {
			t.Fatalf("one that answers waits for %s", wait)
		}
		tries.Take("good", now)
		tries.Answered("good")
	}
	tries.Answered("never taken")
}

func TestTargetsThatAreCountedAreBounded(t *testing.T) {
	t.Parallel()
	var tries webhook.Tries
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 100_000 {
		tries.Take(fmt.Sprint(i), now)
	}
	if tries.Wait("one more", now) == 0 || tries.Wait("7", now) != 0 {
		t.Error("they are not bounded, or a known one waits")
	}
	now = now.Add(time.Hour)
	tries.Take("7", now)
	if tries.Wait("one more", now) != 0 {
		t.Error("what is over is not forgotten")
	}
}
