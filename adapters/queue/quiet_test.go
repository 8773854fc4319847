package queue

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestTheEndOfTheQueueIsNoError(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(quiet{slog.NewTextHandler(&out, nil)})
	log.Error("maintenance: Error starting transaction", "error", "context canceled")
	log.Error("maintenance: Error cleaning jobs", "error", "begin: context canceled")
	log.Info("started")
	log.Error("maintenance: Error cleaning jobs", "error", "disk full")
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "disk full") {
		t.Errorf("logged\n%s", got)
	}
}
