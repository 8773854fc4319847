package queue

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
)

// What River logs as an error while it is stopped is no alarm; before, it is one whatever its text.
func TestErrorsWhileTheQueueStopsAreInformation(t *testing.T) {
	var out bytes.Buffer
	var stopping atomic.Bool
	log := slog.New(quiet{slog.NewTextHandler(&out, nil), &stopping}).With("part", "jobs")
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
