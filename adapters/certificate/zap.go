package certificate

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap/zapcore"
)

// core writes what certmagic logs to the service's log. What it logs for debugging is left out: that has requests and
// answers of the authority.
type core struct {
	log    *slog.Logger
	fields []zapcore.Field
}

var levels = map[zapcore.Level]slog.Level{zapcore.InfoLevel: slog.LevelInfo, zapcore.WarnLevel: slog.LevelWarn}

// Enabled leaves debugging out.
func (c *core) Enabled(level zapcore.Level) bool { return level >= zapcore.InfoLevel }

// With returns a core that adds fields.
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{log: c.log, fields: slices.Concat(c.fields, fields)}
}

// Check adds the core to what is written.
func (c *core) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write writes an entry.
func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	m := zapcore.NewMapObjectEncoder()
	for _, f := range slices.Concat(c.fields, fields) {
		f.AddTo(m)
	}
	level, known := levels[e.Level]
	if !known {
		level = slog.LevelError
	}
	attrs := []slog.Attr{slog.String("part", e.LoggerName)}
	for _, name := range slices.Sorted(maps.Keys(m.Fields)) {
		attrs = append(attrs, slog.Any(name, m.Fields[name]))
	}
	c.log.LogAttrs(context.Background(), level, "acme: "+e.Message, attrs...)
	return nil
}

// Sync does nothing.
func (*core) Sync() error { return nil }
