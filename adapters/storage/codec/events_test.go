package codec_test

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agentproxy/adapters/storage/codec"
	"agentproxy/domain/eventlog"
)

var now = time.Date(2026, 3, 14, 9, 26, 53, 589793000, time.UTC)

func someEvents(n int) []eventlog.Event {
	hosts := []string{"example.com", "shop.example.org", "api.example.net"}
	list := make([]eventlog.Event, n)
	for i := range list {
		list[i] = eventlog.Event{ID: fmt.Sprintf("evt_%020d", i), At: now.Add(time.Duration(i) * time.Microsecond),
			Source: eventlog.Agent, Type: "success", TargetHost: hosts[i%3], StatusCode: 200, LatencyMS: 120 + i}
	}
	return list
}

func anyTime() *rapid.Generator[time.Time] {
	return rapid.OneOf(rapid.Just(time.Time{}), rapid.Map(rapid.Int64Range(-1<<50, 1<<53), func(us int64) time.Time {
		if us == 0 { // stored as no time
			return time.Time{}
		}
		return time.UnixMicro(us).UTC()
	}))
}

func anyEvent() *rapid.Generator[eventlog.Event] {
	id := rapid.OneOf(rapid.StringMatching(`evt_[0-9a-z]{20}`), rapid.StringMatching(`evt_[0-9A-Za-z]{0,30}`), rapid.String())
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "success", "example.com", "192.0.2.1"}), rapid.String())
	return rapid.Custom(func(t *rapid.T) eventlog.Event {
		e := eventlog.Event{
			ID: id.Draw(t, "id"), At: anyTime().Draw(t, "at"), OccurredAt: anyTime().Draw(t, "occurred"),
			Source: eventlog.Source(rapid.IntRange(0, 2).Draw(t, "source")),
			Type:   text.Draw(t, "type"), TargetHost: text.Draw(t, "host"),
			StatusCode: rapid.Int().Draw(t, "status"), LatencyMS: rapid.Int().Draw(t, "latency"),
			Retryable: rapid.Bool().Draw(t, "retryable"),
		}
		if rapid.Bool().Draw(t, "counted") {
			e.Count = rapid.IntRange(2, 1<<40).Draw(t, "count")
		}
		if rapid.Bool().Draw(t, "more") {
			e.Code, e.Bytes, e.ExitIP = text.Draw(t, "code"), rapid.Int64().Draw(t, "bytes"), text.Draw(t, "exit")
			e.Message, e.HowToFix = text.Draw(t, "message"), text.Draw(t, "fix")
		}
		return e
	})
}

func TestAnyEventsAreReadBackAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(anyEvent(), 0, 20).Draw(t, "events")
		got, err := codec.DecodeEvents(codec.AppendEvents(nil, want))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(want, got) {
			t.Fatalf("(-want +got):\n%s", cmp.Diff(want, got))
		}
	})
}

func TestATypicalEventTakesLittleRoom(t *testing.T) {
	events := make([]eventlog.Event, 100)
	for i := range events {
		events[i] = eventlog.Event{ID: "evt_" + strings.Repeat("z9", 10), At: now, Source: eventlog.Agent, Type: "success",
			TargetHost: []string{"example.com", "shop.example.org"}[i%2], StatusCode: 200, LatencyMS: 100 + i}
	}
	if size := len(codec.AppendEvents(nil, events)); size > 25*len(events) {
		t.Errorf("100 events take %d bytes", size)
	}
}

func TestADamagedChunkIsRefused(t *testing.T) {
	whole := codec.AppendEvents(nil, someEvents(10))
	for cut := range len(whole) {
		// A cut between two events leaves a shorter chunk; no cut panics.
		if got, err := codec.DecodeEvents(whole[:cut]); err == nil && len(got) >= 10 {
			t.Errorf("cut to %d of %d bytes it still has %d events", cut, len(whole), len(got))
		}
	}
	if _, err := codec.DecodeEvents(append([]byte{4}, whole[1:]...)); err == nil {
		t.Error("an unknown version is read")
	}
}

// A program that has version 1 only reads what has no counts.
func TestCountsAloneNeedTheSecondVersion(t *testing.T) {
	events := someEvents(3)
	events[1].Count = 1
	if b := codec.AppendEvents(nil, events); b[0] != 1 {
		t.Errorf("without counts it is version %d", b[0])
	}
	events[1].Count = 7
	b := codec.AppendEvents(nil, events)
	if b[0] != 2 {
		t.Errorf("with a count it is version %d", b[0])
	}
	if _, err := codec.DecodeEvents(append([]byte{1}, b[1:]...)); err == nil {
		t.Error("a count in version 1 is read")
	}
}

func FuzzDecodeEvents(f *testing.F) {
	f.Add([]byte{})
	f.Add(codec.AppendEvents(nil, someEvents(3)))
	f.Add(codec.AppendEvents(nil, []eventlog.Event{{ID: "x", At: now, OccurredAt: now, Code: "C", Message: "m", LatencyMS: -1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		events, err := codec.DecodeEvents(b)
		if err != nil {
			return
		}
		again, err := codec.DecodeEvents(codec.AppendEvents(nil, events))
		if err != nil || !slices.Equal(events, again) {
			t.Fatalf("not stable: %v\n%s", err, cmp.Diff(events, again))
		}
	})
}

func BenchmarkChunk(b *testing.B) {
	events := someEvents(100)
	b.Run("write", func(b *testing.B) {
		buf := make([]byte, 0, 8192)
		for b.Loop() {
			buf = codec.AppendEvents(buf[:0], events)
		}
		b.ReportMetric(float64(len(buf))/100, "bytes/event")
	})
	b.Run("read", func(b *testing.B) {
		buf := codec.AppendEvents(nil, events)
		for b.Loop() {
			if _, err := codec.DecodeEvents(buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkAlternative compares a chunk with encoding/json and compress/flate.
// docs/adr/0006-stored-encodings.md has the figures.
func BenchmarkAlternative(b *testing.B) {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 10, 100} {
		events := randomEvents(n)
		encode := func() []byte {
			text, err := json.Marshal(events)
			if err != nil {
				b.Fatal(err)
			}
			var out bytes.Buffer
			w.Reset(&out)
			_, _ = w.Write(text)
			_ = w.Close()
			return out.Bytes()
		}
		b.Run(fmt.Sprintf("json+flate/write/events=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var size int
			for b.Loop() {
				size = len(encode())
			}
			b.ReportMetric(float64(size)/float64(n), "bytes/event")
		})
		b.Run(fmt.Sprintf("json+flate/read/events=%d", n), func(b *testing.B) {
			body := encode()
			b.ReportAllocs()
			for b.Loop() {
				var got []eventlog.Event
				if err := json.NewDecoder(flate.NewReader(bytes.NewReader(body))).Decode(&got); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("chunk/write/events=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var size int
			for b.Loop() {
				size = len(codec.AppendEvents(make([]byte, 0, 64+32*n), events))
			}
			b.ReportMetric(float64(size)/float64(n), "bytes/event")
		})
		b.Run(fmt.Sprintf("chunk/read/events=%d", n), func(b *testing.B) {
			body := codec.AppendEvents(nil, events)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := codec.DecodeEvents(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// randomEvents returns events with random ids and latencies, which someEvents has not.
func randomEvents(n int) []eventlog.Event {
	chance := rand.New(rand.NewPCG(1, 2))
	list := someEvents(n)
	for i := range list {
		id := []byte("evt_00000000000000000000")
		for j := 4; j < len(id); j++ {
			id[j] = "0123456789abcdefghijklmnopqrstuvwxyz"[chance.IntN(36)]
		}
		list[i].ID, list[i].LatencyMS = string(id), 20+chance.IntN(2000)
		list[i].At = now.Add(time.Duration(i)*time.Second + time.Duration(chance.IntN(1e9)))
	}
	return list
}
