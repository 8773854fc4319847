package health_test

import (
	"fmt"
	"time"

	"agentproxy/domain/health"
)

// reportEach reports n events of a type, one a second, and returns the time of the last.
func reportEach(s *health.State, n int, of health.Type, from time.Time) time.Time {
	for i := range n {
		s.Report(health.Event{Type: of, At: from.Add(time.Duration(i) * time.Second)})
	}
	return from.Add(time.Duration(n-1) * time.Second)
}

// Two blocks outweigh the neutral start; one after twenty successes hardly counts.
func ExampleState_Verdict() {
	var fresh, used health.State
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	v := fresh.Verdict(reportEach(&fresh, 2, health.Block, begin), false)
	fmt.Println(v.HealthScore, v.RiskLevel, v.Recommendation, v.Reason)

	begin = reportEach(&used, 20, health.Success, begin).Add(time.Second)
	v = used.Verdict(reportEach(&used, 1, health.Block, begin), false)
	fmt.Println(v.HealthScore, v.RiskLevel, v.Recommendation, v.Reason)
	// Output:
	// 55 high rotate_now block_rate
	// 95 low ok healthy
}

// Another exit does not help against a limit of the target's rate, and a static session has none.
func ExampleState_Verdict_pause() {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var limited health.State
	v := limited.Verdict(reportEach(&limited, 3, health.RateLimit, begin), false)
	fmt.Println(v.HealthScore, v.Recommendation, v.Reason)

	var blocked health.State
	v = blocked.Verdict(reportEach(&blocked, 5, health.Block, begin), true)
	fmt.Println(v.HealthScore, v.Recommendation, v.Reason)
	// Output:
	// 70 pause rate_limited
	// 19 pause block_rate
}

// Silence heals: the weights halve every ten minutes.
func ExampleState_Verdict_silence() {
	var s health.State
	last := reportEach(&s, 10, health.Block, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	fmt.Println(s.Verdict(last.Add(30*time.Minute), false).HealthScore)
	// Output: 73
}

// A rotation leaves a quarter of the evidence behind.
func ExampleState_Rotate() {
	var s health.State
	last := reportEach(&s, 5, health.Block, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	s.Rotate(health.RotationManual, last)
	fmt.Println(s.Verdict(last, false).Reason)
	last = reportEach(&s, 5, health.Success, last.Add(time.Second))
	fmt.Println(s.Verdict(last, false).HealthScore)
	// Output:
	// fresh_exit
	// 88
}

func ExampleRiskOf() {
	for _, score := range []int{80, 79, 60, 59, 35, 34} {
		fmt.Print(score, " ", health.RiskOf(score), "\n")
	}
	// Output:
	// 80 low
	// 79 medium
	// 60 medium
	// 59 high
	// 35 high
	// 34 critical
}

// A webhook about a level needs five points past the border.
func ExampleLevel() {
	fmt.Println(health.Level(health.Low, 76), health.Level(health.Low, 75))
	// Output: low medium
}
