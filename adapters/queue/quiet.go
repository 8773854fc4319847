package queue

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"agentproxy/adapters/lograte"
)

// quiet passes on River's warnings and errors and drops the rest. One that is repeated, as at each poll while a disk is
// full, is logged once a minute, with how often it was left out. While the queue stops, which ends statements that are
// under way, they are information.
type quiet struct {
	slog.Handler
	stopping *atomic.Bool
	logged   *lograte.Limiter
}

func newQuiet(to slog.Handler, stopping *atomic.Bool) quiet {
	return quiet{to, stopping, lograte.New(1, time.Minute)}
}

// Enabled returns true from warnings upwards.
func (quiet) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle passes on a record.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if q.stopping.Load() {
		r.Level = slog.LevelInfo
	}
	if !q.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	text := textOf(r)
	if !q.logged.Allow(text, r.Time) {
		return nil
	}
	if leftOut := q.logged.LeftOut(text, r.Time); leftOut > 0 {
		r.AddAttrs(slog.Int("more_since_last", leftOut))
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs keeps the filter.
func (q quiet) WithAttrs(a []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(a), q.stopping, q.logged}
}

// WithGroup keeps the filter.
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.stopping, q.logged}
}

// textOf returns what is the same in records that are repeated: their text and attributes.
func textOf(record slog.Record) string {
	var text strings.Builder
	text.WriteString(record.Message)
	record.Attrs(func(a slog.Attr) bool {
		text.WriteString("\x00" + a.String())
		return true
	})
	return text.String()
}
