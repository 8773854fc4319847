package health_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"agentproxy/domain/health"

	"pgregory.net/rapid"
)

func TestStatsKeepTheSourcesAndTheExitsApart(t *testing.T) {
	slow := health.Event{Type: health.HTTPError, StatusCode: 503, LatencyMS: 300, HasLatency: true}
	fast := health.Event{Type: health.Success, StatusCode: 200, LatencyMS: 100, HasLatency: true}
	s := replay(report(2, slow), observe(1, timeout), rotate(health.RotationManual), report(1, fast), report(1, custom))
	got := s.state.Stats()
	none := func(over map[health.Type]int64) map[health.Type]int64 {
		for _, kind := range health.Types() {
			over[kind] += 0
		}
		return over
	}
	want := health.Stats{
		Rotations: 1,
		Session: health.ExitStats{
			Reported: health.Figures{
				TotalEvents: 4, ByType: none(map[health.Type]int64{health.HTTPError: 2, health.Success: 1, health.Custom: 1}),
				StatusCodes: map[int]int64{503: 2, 200: 1}, LatencyCount: 3, AvgLatencyMS: 700.0 / 3, P95LatencyMS: 300, LastEventAt: s.now,
			},
			Observed: health.Figures{
				TotalEvents: 1, ByType: none(map[health.Type]int64{health.Timeout: 1}), StatusCodes: map[int]int64{},
				LastEventAt: start.Add(3 * time.Second),
			},
		},
		CurrentExit: health.ExitStats{
			Reported: health.Figures{
				TotalEvents: 2, ByType: none(map[health.Type]int64{health.Success: 1, health.Custom: 1}),
				StatusCodes: map[int]int64{200: 1}, LatencyCount: 1, AvgLatencyMS: 100, P95LatencyMS: 100, LastEventAt: s.now,
			},
			Observed: health.Figures{ByType: none(map[health.Type]int64{}), StatusCodes: map[int]int64{}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestAMatchedObservationIsCountedAndNotScored(t *testing.T) {
	s := replay(report(1, timeout))
	before := s.verdict()
	s.state.ObserveMatched(health.Event{Type: health.Timeout, At: s.now})
	if got := s.verdict(); got != before {
		t.Errorf("%+v, want %+v", got, before)
	}
	if n := s.state.Stats().Session.Observed.TotalEvents; n != 1 {
		t.Errorf("%d observed, want 1", n)
	}
}

func TestStatusCodesAreBounded(t *testing.T) {
	var s health.State
	for range 3 {
		s.Report(health.Event{Type: health.Success, StatusCode: 200, At: start})
	}
	for code := 300; code < 400; code++ {
		s.Report(health.Event{Type: health.Success, StatusCode: code, At: start})
	}
	s.Report(health.Event{Type: health.HTTPError, At: start})
	f := s.Stats().Session.Reported
	if len(f.StatusCodes) != 32 || f.StatusCodes[200] != 3 || f.StatusCodes[399] != 1 {
		t.Errorf("%d codes, 200: %d, 399: %d; want 32 with the most met and the newest", len(f.StatusCodes), f.StatusCodes[200], f.StatusCodes[399])
	}
	sum := f.OtherStatusCodes
	for _, n := range f.StatusCodes {
		sum += n
	}
	if sum != 103 {
		t.Errorf("%d events with a status, want 103", sum)
	}
}

func TestP95IsWithin3Percent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s health.State
		top := rapid.SampledFrom([]int{10, 500, 20_000, health.MaxLatencyMS}).Draw(t, "top")
		all := rapid.SliceOfN(rapid.IntRange(0, top), 1, 200).Draw(t, "latencies")
		sum := 0
		for i, ms := range all {
			if i == len(all)/2 {
				s.Rotate(health.RotationScheduled, start)
			}
			s.Report(health.Event{Type: health.Custom, LatencyMS: ms, HasLatency: true, At: start})
			sum += ms
		}
		slices.Sort(all)
		want := all[int(math.Ceil(0.95*float64(len(all))))-1]
		f := s.Stats().Session.Reported
		if off := math.Abs(float64(f.P95LatencyMS - want)); off > 0.032*float64(want) {
			t.Fatalf("p95 %d, want %d", f.P95LatencyMS, want)
		}
		if mean := float64(sum) / float64(len(all)); f.AvgLatencyMS != mean || f.LatencyCount != int64(len(all)) {
			t.Fatalf("average %v of %d, want %v of %d", f.AvgLatencyMS, f.LatencyCount, mean, len(all))
		}
	})
}

func TestP95IsTheMiddleOfItsBucket(t *testing.T) {
	for ms := 1; ms < health.MaxLatencyMS; ms += 1 + ms/97 {
		latency := func(ms int) health.Event { return health.Event{Type: health.Custom, LatencyMS: ms, HasLatency: true} }
		s := replay(report(1, latency(0)), report(98, latency(ms)), report(1, latency(health.MaxLatencyMS)))
		got := s.state.Stats().Session.Reported.P95LatencyMS
		if off := math.Abs(float64(got - ms)); off > 0.032*float64(ms) {
			t.Fatalf("p95 of 98 × %d ms is %d", ms, got)
		}
	}
}

func TestEqualLatenciesHaveAnExactP95(t *testing.T) {
	for _, ms := range []int{0, 31, 32, 1010, 99_999, health.MaxLatencyMS} {
		s := replay(report(100, health.Event{Type: health.Success, LatencyMS: ms, HasLatency: true}))
		if got := s.state.Stats().Session.Reported.P95LatencyMS; got != ms {
			t.Errorf("p95 of 100 × %d ms is %d", ms, got)
		}
	}
}

func at(host string, e health.Event) health.Event {
	e.Host = host
	return e
}

func TestWorstHosts(t *testing.T) {
	s := replay(report(3, at("good.test", success)), report(1, at("bad.test", timeout)), report(2, at("worse.test", block)), report(1, at("bad.test", success)))
	got := s.state.WorstHosts(s.now)
	if len(got) != 2 || got[0].Host != "worse.test" || got[0].Events != 2 || got[1].Host != "bad.test" || got[1].Events != 2 {
		t.Fatalf("%+v, want worse.test of 2 events, then bad.test of 2", got)
	}
	if w := 0.5 * math.Pow(0.97*math.Exp2(-1.0/600), 3); math.Abs(got[1].BadWeight-w) > 1e-9 {
		t.Errorf("bad.test weighs %v, want %v", got[1].BadWeight, w)
	}
	later := s.state.WorstHosts(s.now.Add(10 * time.Minute))
	if math.Abs(later[0].BadWeight-got[0].BadWeight/2) > 1e-9 {
		t.Errorf("after a half-life %v, want half of %v", later[0].BadWeight, got[0].BadWeight)
	}
	s.state.Rotate(health.RotationManual, s.now)
	if rotated := s.state.WorstHosts(s.now); math.Abs(rotated[0].BadWeight-got[0].BadWeight/4) > 1e-9 {
		t.Errorf("after a rotation %v, want a quarter of %v", rotated[0].BadWeight, got[0].BadWeight)
	}
	if gone := s.state.WorstHosts(s.now.Add(2 * time.Hour)); len(gone) != 0 {
		t.Errorf("after two hours %+v, want none", gone)
	}
}

func TestWorstHostsFindsTheWorstOfMany(t *testing.T) {
	var crowd []health.Event
	for i := range 40 {
		crowd = append(crowd, at(fmt.Sprintf("h%d.test", i), of(health.Timeout)))
	}
	s := replay(report(1, crowd...), repeat(3, report(2, at("worst.test", block)), report(1, crowd...)), report(1, at("worst.test", block)))
	got := s.state.WorstHosts(s.now)
	if len(got) != 5 || got[0].Host != "worst.test" {
		t.Errorf("%+v, want five, worst.test first", got)
	}
}
