package storage

import (
	"context"
	"database/sql"
	"strings"
	"sync"
)

// postgresConn is a connection for GORM, which numbers parameters by itself, and
// passes flags as booleans.
type postgresConn struct{ *sql.Conn }

// ExecContext runs a statement.
func (c postgresConn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return c.Conn.ExecContext(ctx, query, values(args)...)
}

// QueryContext runs a query.
func (c postgresConn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return c.Conn.QueryContext(ctx, query, values(args)...)
}

// QueryRowContext runs a query for one row.
func (c postgresConn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return c.Conn.QueryRowContext(ctx, query, values(args)...)
}

// rebound are the statements that were rewritten; there are few, for lists of
// values come in few sizes.
var rebound sync.Map

// rebind writes ?1 as $1. No statement of ours holds another question mark.
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

// values are args as PostgreSQL takes them: a flag is a number in both schemas,
// and text must be UTF-8 without zeros. What is not could only be asked for, as
// a part of a URL for example, and is not found.
func values(args []any) []any {
	for i, arg := range args {
		switch arg := arg.(type) {
		case bool:
			args[i] = flag(arg)
		case string:
			if strings.IndexByte(arg, 0) >= 0 {
				arg = strings.ReplaceAll(arg, "\x00", "\uFFFD")
			}
			args[i] = strings.ToValidUTF8(arg, "\uFFFD")
		}
	}
	return args
}
