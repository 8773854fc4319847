package queue

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// repeatAfter is how long a record is left out that was logged already, and mostRecords how many are remembered.
const (
	repeatAfter = time.Minute
	mostRecords = 256
)

// quiet passes on River's warnings and errors and drops the rest. One that is repeated, as at each poll while a disk is
// full, is logged once a minute, with how often it was left out. While the queue stops, which ends statements that are
// under way, they are information.
type quiet struct {
	slog.Handler
	stopping *atomic.Bool
	repeats  *repeats
}

func newQuiet(to slog.Handler, stopping *atomic.Bool) quiet {
	return quiet{to, stopping, &repeats{of: map[string]*repeated{}}}
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
	logged, leftOut := q.repeats.admit(r)
	if !logged {
		return nil
	}
	if leftOut > 0 {
		r.AddAttrs(slog.Int("more_since_last", leftOut))
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs keeps the filter.
func (q quiet) WithAttrs(a []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(a), q.stopping, q.repeats}
}

// WithGroup keeps the filter.
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.stopping, q.repeats}
}

// repeats are the records that were logged lately, by their text and attributes.
type repeats struct {
	mu sync.Mutex
	of map[string]*repeated
}

type repeated struct {
	at      time.Time // when it was logged last
	leftOut int       // since then
}

// admit reports whether a record is logged, and how many of the same were not since the last.
func (r *repeats) admit(record slog.Record) (logged bool, leftOut int) {
	var key strings.Builder
	key.WriteString(record.Message)
	record.Attrs(func(a slog.Attr) bool {
		key.WriteString("\x00" + a.String())
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.of[key.String()]
	if last != nil && record.Time.Sub(last.at).Abs() < repeatAfter {
		last.leftOut++
		return false, 0
	}
	if last == nil {
		if len(r.of) >= mostRecords {
			clear(r.of)
		}
		last = &repeated{}
		r.of[key.String()] = last
	}
	leftOut = last.leftOut
	last.at, last.leftOut = record.Time, 0
	return true, leftOut
}
