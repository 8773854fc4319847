package health_test

import (
	"testing"
	"time"

	"agentproxy/domain/health"

	"pgregory.net/rapid"
)

// The risk that the first bytes of a stored state give is that of the whole state.
func TestTheBeginningOfAStateHasItsRisk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyHistory(t)
		s.state.Announce(s.now)
		b := encode(t, &s.state)
		g, err := health.DecodeSummary(b[:min(len(b), health.SummarySize)])
		if err != nil {
			t.Fatal(err)
		}
		for _, later := range []time.Duration{-time.Hour, 0, time.Second, 10 * time.Minute, 24 * time.Hour} {
			at := s.now.Add(later)
			if want := s.state.Verdict(at, false).RiskLevel; g.Risk(at) != want {
				t.Fatalf("after %s the risk is %s, want %s", later, g.Risk(at), want)
			}
		}
	})
	for _, b := range [][]byte{nil, {1}, {2, 0, 0}, make([]byte, health.SummarySize)} {
		if g, err := health.DecodeSummary(b); err == nil {
			t.Errorf("%x is read as %+v", b, g)
		}
	}
	full := fullState()
	b := encode(t, &full)
	if full.LastAt().IsZero() {
		t.Error("no event was scored")
	}
	for cut := range health.SummarySize {
		if g, err := health.DecodeSummary(b[:cut]); err == nil && g != full.Summary {
			t.Errorf("%d bytes are read as %+v", cut, g)
		}
	}
}
