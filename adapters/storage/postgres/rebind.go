package postgres

import (
	"context"
	"database/sql"
	"strings"
	"sync"
)

// ormConn is a connection for GORM, which numbers parameters by itself and passes flags as booleans.
type ormConn struct{ *sql.Conn }

// ExecContext runs a statement.
func (c ormConn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return c.Conn.ExecContext(ctx, query, arguments(args)...)
}

// QueryContext runs a query.
func (c ormConn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return c.Conn.QueryContext(ctx, query, arguments(args)...)
}

// QueryRowContext runs a query for one row.
func (c ormConn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return c.Conn.QueryRowContext(ctx, query, arguments(args)...)
}

// rebound caches the rewritten statements. There are few, because lists of values come in few sizes.
var rebound sync.Map

// rebind writes ?1 as $1. The statements hold no other question mark.
func rebind(query string) string {
	if strings.IndexByte(query, '?') < 0 {
		return query
	}
	if done, ok := rebound.Load(query); ok {
		return done.(string)
	}
	done := strings.ReplaceAll(query, "?", "$")
	rebound.Store(query, done)
	return done
}

// arguments changes args in place to what PostgreSQL accepts: a flag is a number in both schemas, and
// text must be UTF-8 without zeros. Other text can only be searched for, as a part of a URL for
// example, and is not found.
func arguments(args []any) []any {
	for i, arg := range args {
		switch arg := arg.(type) {
		case bool:
			args[i] = int64(0)
			if arg {
				args[i] = int64(1)
			}
		case string:
			args[i] = text(arg)
		case []string:
			for j := range arg {
				arg[j] = text(arg[j])
			}
		}
	}
	return args
}

func text(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
