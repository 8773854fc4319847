package queue

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What River logs as an error while it is stopped is no alarm; before, it is one whatever its text.
func TestErrorsWhileTheQueueStopsAreInformation(t *testing.T) {
	var out bytes.Buffer
	var stopping atomic.Bool
	log := slog.New(newQuiet(slog.NewTextHandler(&out, nil), &stopping)).With("part", "jobs")
	log.Info("started")
	log.Error("Error cleaning jobs", "error", "begin: context canceled")
	stopping.Store(true)
	log.Error("Error starting transaction", "error", "context canceled")
	want := []string{`level=ERROR msg="Error cleaning jobs"`, `level=INFO msg="Error starting transaction"`}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], want[0]) || !strings.Contains(lines[1], want[1]) {
		t.Errorf("logged\n%s", out.String())
	}
}

// A record that River repeats is logged once a minute, with how often it was left out; one that differs is another.
func TestWhatRiverRepeatsIsLoggedOnceAMinute(t *testing.T) {
	var out bytes.Buffer
	var stopping atomic.Bool
	log := newQuiet(slog.NewTextHandler(&out, nil), &stopping)
	at := time.Unix(1_700_000_000, 0)
	handle := func(attrs ...any) {
		r := slog.NewRecord(at, slog.LevelError, "fetch", 0)
		r.Add(attrs...)
		if err := log.Handle(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	for range 5 {
		handle("err", "full")
		at = at.Add(time.Second)
	}
	handle("err", "gone")
	at = at.Add(time.Minute)
	handle("err", "full")
	handle("err", "full")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "full") || !strings.Contains(lines[1], "gone") ||
		!strings.HasSuffix(lines[2], "err=full more_since_last=4") {
		t.Errorf("logged\n%s", out.String())
	}
}
