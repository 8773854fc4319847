package health_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"agentproxy/domain/health"

	"pgregory.net/rapid"
)

func encode(t interface{ Fatal(...any) }, s *health.State) []byte {
	b, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEncodingKeepsTheWholeState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyHistory(t)
		s.state.Announce(s.now)
		var back health.State
		if err := back.UnmarshalBinary(encode(t, &s.state)); err != nil {
			t.Fatal(err)
		}
		if back != s.state {
			t.Fatalf("decoded %+v\nencoded %+v", back, s.state)
		}
	})
}

// stateV1 is storedState as version 1 wrote it.
const stateV1 = "" +
	"010000e9357e2d19ffe83f7a6490403d9ac23ffb18e77e100abe3f0000000000000000c465dbd229ea0540c0c8e1b1d3fe92" +
	"0380bbaab0d3fe920380c4a4b1d3fe9203c0bfe7b0d3fe920300000080c4a4b1d3fe9203c9d490cd06080001010103010401" +
	"05010601070108010108020204000000000002c801029303040080bbaab0d3fe92033704080200d8045a7800000001000000" +
	"0000c0bfe7b0d3fe92030101010000000000000000c0c8e1b1d3fe9203000000000000000000000002060300000000000000" +
	"00060509195b3d5bc0ec3f612e74657374622e74657374"

// A state that an earlier build stored must still decode. When the layout
// changes, add the new bytes and keep these.
func TestStoredStatesDecode(t *testing.T) {
	stored, err := hex.DecodeString(stateV1)
	if err != nil {
		t.Fatal(err)
	}
	var s health.State
	if err := s.UnmarshalBinary(stored); err != nil {
		t.Fatal(err)
	}
	want := storedState()
	at := start.Add(time.Minute)
	if got, want := s.Verdict(at, false), want.Verdict(at, false); got.HealthScore != want.HealthScore || got.Reason != want.Reason {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !reflect.DeepEqual(s.Stats(), want.Stats()) {
		t.Errorf("stats %+v, want %+v", s.Stats(), want.Stats())
	}
	if again := encode(t, &s); !bytes.Equal(again, stored) {
		t.Errorf("it encodes to %x, want %x", again, stored)
	}
}

// storedState has a little of everything.
func storedState() health.State {
	s := replay(
		report(2, health.Event{Type: health.Success, StatusCode: 200, LatencyMS: 120, HasLatency: true, Host: "a.test"}),
		report(4, health.Event{Type: health.HTTPError, StatusCode: 403, LatencyMS: 90, HasLatency: true, Host: "b.test"}),
		observe(1, at("b.test", timeout)),
		rotate(health.RotationHTTP429),
		report(1, at("a.test", success)),
	)
	s.state.Announce(s.now)
	return s.state
}

func TestCorruptStatesAreRefused(t *testing.T) {
	s := storedState()
	whole := encode(t, &s)
	refused := func(t *testing.T, b []byte) {
		t.Helper()
		back := s
		if err := back.UnmarshalBinary(b); !errors.Is(err, health.ErrCorrupt) {
			t.Errorf("error %v, want ErrCorrupt", err)
		}
		if back != (health.State{}) {
			t.Error("a refused state is not a fresh one")
		}
	}
	for cut := range whole {
		refused(t, whole[:cut])
	}
	refused(t, append(whole[:len(whole):len(whole)], 0))
	other := append([]byte(nil), whole...)
	other[0] = 2
	refused(t, other)
}

func FuzzUnmarshal(f *testing.F) {
	s := storedState()
	f.Add(encode(f, &s))
	f.Add(encode(f, new(health.State)))
	full := fullState()
	f.Add(encode(f, &full))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s health.State
		if s.UnmarshalBinary(data) != nil {
			return
		}
		var back health.State
		if err := back.UnmarshalBinary(encode(t, &s)); err != nil || back != s {
			t.Fatalf("decoded to %+v and again to %+v: %v", s, back, err)
		}
		s.Report(health.Event{Type: health.Block, Host: "x.test", LatencyMS: 5, HasLatency: true, At: start})
		s.Rotate(health.RotationTimeout, start)
		s.Observe(health.Event{Type: health.Timeout, At: start.Add(time.Hour)})
		s.Stats()
		s.WorstHosts(start)
		if v := s.Verdict(start, true); v.HealthScore < 0 || v.HealthScore > 100 {
			t.Fatalf("score %d", v.HealthScore)
		}
	})
}

// fullState is a busy session: 16 hosts, 32 codes, latencies of all sizes, two
// reports a second.
func fullState() health.State {
	var s health.State
	for i := range 4000 {
		e := health.Event{
			Type:       health.Types()[i%6],
			StatusCode: 200 + i%40,
			LatencyMS:  (i * i * 7) % 20_000,
			HasLatency: true,
			Host:       fmt.Sprintf("www.target-%d.test", i%20),
			At:         start.Add(time.Duration(i) * 500 * time.Millisecond),
		}
		s.Report(e)
		if i%1500 == 1499 {
			s.Rotate(health.RotationBlock, e.At)
		}
	}
	return s
}

func TestAnEncodedStateIsSmall(t *testing.T) {
	full, some := fullState(), storedState()
	for _, c := range []struct {
		name string
		s    *health.State
		most int
	}{{"fresh", new(health.State), 100}, {"some", &some, 300}, {"full", &full, 3000}} {
		if n := len(encode(t, c.s)); n > c.most {
			t.Errorf("%s: %d bytes, want at most %d", c.name, n, c.most)
		} else {
			t.Logf("%s: %d bytes", c.name, n)
		}
	}
}

func BenchmarkReport(b *testing.B) {
	s := fullState()
	e := health.Event{Type: health.HTTPError, StatusCode: 403, LatencyMS: 250, HasLatency: true, Host: "www.target-9.test", At: start.Add(time.Hour)}
	b.ReportAllocs()
	for b.Loop() {
		e.At = e.At.Add(time.Second)
		s.Report(e)
	}
}

func BenchmarkVerdict(b *testing.B) {
	healthy, paused := storedState(), replay(report(10, limited))
	b.Run("ok", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			healthy.Verdict(start.Add(time.Minute), false)
		}
	})
	b.Run("pause", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			paused.state.Verdict(paused.now, false)
		}
	})
}

// BenchmarkBatch is what one telemetry batch costs a session: read the state,
// ten events, write it.
func BenchmarkBatch(b *testing.B) {
	full, some := fullState(), storedState()
	for name, s := range map[string]*health.State{"some": &some, "full": &full} {
		b.Run(name, func(b *testing.B) {
			stored, room := encode(b, s), make([]byte, 0, 4096)
			e := health.Event{Type: health.Success, StatusCode: 200, LatencyMS: 250, HasLatency: true, Host: "www.target-9.test", At: start.Add(time.Hour)}
			b.ReportAllocs()
			for b.Loop() {
				var s health.State
				if err := s.UnmarshalBinary(stored); err != nil {
					b.Fatal(err)
				}
				for range 10 {
					s.Report(e)
				}
				room, _ = s.AppendBinary(room[:0])
			}
		})
	}
}
