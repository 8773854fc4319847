package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
)

// sqlState returns the SQLSTATE of a server's error, or "" for any other error.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// The SQLSTATEs that are handled.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
	uniqueViolation      = "23505"
	transactionAborted   = "25P02"
	diskFull             = "53100"
	// A table was changed since the statement was prepared; it is prepared again the next time.
	planChanged = "0A000"
)

// lost reports whether the connection to the server is gone.
func lost(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	for _, gone := range []error{driver.ErrBadConn, sql.ErrConnDone, pgconn.ErrConnClosed, puddle.ErrClosedPool, io.EOF,
		io.ErrUnexpectedEOF, pgx.ErrTxClosed, net.ErrClosed} {
		if errors.Is(err, gone) {
			return true
		}
	}
	switch code := sqlState(err); code {
	case "57P01", "57P02", "57P03", "57P05", "25P03": // it shuts down or starts up, or ended the session
		return true
	default:
		return strings.HasPrefix(code, "08")
	}
}

// temporary reports whether the server may succeed later: it is out of some resource, a lock or a
// statement took too long, or it is a standby.
func temporary(err error) bool {
	switch code := sqlState(err); code {
	case lockNotAvailable, "57014", "25006", serializationFailure, deadlockDetected, planChanged:
		return true
	default:
		return strings.HasPrefix(code, "53") || strings.HasPrefix(code, "58")
	}
}

// Classify marks failures of the server and of the network as unavailable, and returns every other
// error as it is. The end of the caller's context is not such a failure, though the driver may call
// the connection bad then: it does so for every statement that it did not send.
func (d *Database) Classify(ctx context.Context, err error) error {
	if err != nil && sqlState(err) == diskFull {
		d.Space.noteFull()
	}
	switch {
	case err == nil, errors.Is(err, domain.ErrUnavailable), errors.Is(err, context.Canceled):
		return err
	case ctx.Err() != nil && (lost(err) || temporary(err)):
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	case lost(err):
		return engine.UnavailableFor("connection", "database", err)
	case temporary(err):
		return engine.UnavailableFor(causeOf(err), "database", err)
	}
	return err
}

// causes names the failures that pass by themselves.
var causes = map[string]string{
	lockNotAvailable:     "lock_timeout",
	deadlockDetected:     "deadlock",
	serializationFailure: "serialization",
	uniqueViolation:      "unique",
	planChanged:          "plan_changed",
	"57014":              "statement_timeout",
	"25006":              "read_only",
	diskFull:             "disk_full",
}

// causeOf names the kind of a failure of the server.
func causeOf(err error) string { return cmp.Or(causes[sqlState(err)], "resources") }
