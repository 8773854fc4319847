package storage

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"

	"agentproxy/domain"
)

// URL is where a PostgreSQL database is, and who we are there. It hides itself
// when printed, for it may hold a password.
type URL string

// LogValue hides the URL from logs.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// String hides the URL from text.
func (u URL) String() string {
	if u == "" {
		return ""
	}
	return "[hidden]"
}

// GoString hides the URL from %#v.
func (u URL) GoString() string { return u.String() }

// Check refuses what is no URL of a PostgreSQL database, without repeating it.
func (u URL) Check() error {
	_, err := u.parse()
	return err
}

func (u URL) parse() (*pgxpool.Config, error) {
	text := string(u)
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return nil, errURL
	}
	c, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, errURL // the driver's error repeats the URL
	}
	return c, nil
}

var errURL = errors.New("must be the URL of a PostgreSQL database, such as postgres://user@host/database")

// The bounds of work on PostgreSQL. Nothing waits for ever: not for a
// connection, a lock, a statement, the next statement of a unit, or the server.
const (
	connectWithin   = 10 * time.Second // at the start
	dialWithin      = 4 * time.Second
	connWithin      = 2 * time.Second // for a free connection
	unitWithin      = 15 * time.Second
	auditWithin     = 30 * time.Minute
	oldestPostgres  = 13
	connectionLives = time.Hour
)

// limits bound what one connection does, in milliseconds.
var limits = map[string]string{
	"statement_timeout":                   "5000",
	"lock_timeout":                        "2000",
	"idle_in_transaction_session_timeout": "10000",
	"application_name":                    "agentproxy",
}

// poolConfig is the configuration of the pool that serves everybody. What the
// URL says of the limits wins.
func poolConfig(u URL, conns int) (*pgxpool.Config, error) {
	c, err := u.parse()
	if err != nil {
		return nil, err
	}
	for name, value := range limits {
		if _, chosen := c.ConnConfig.RuntimeParams[name]; !chosen {
			c.ConnConfig.RuntimeParams[name] = value
		}
	}
	c.MaxConns = int32(conns)
	c.MaxConnLifetime, c.MaxConnLifetimeJitter = connectionLives, connectionLives/10
	c.ConnConfig.ConnectTimeout = dialWithin
	return c, nil
}

// Refusals of a server at the start, in words that hold no secret.
var (
	errLogin      = errors.New("the PostgreSQL server refuses the user or the password")
	errNoDatabase = errors.New("the PostgreSQL server has no such database")
	errNoServer   = errors.New("the PostgreSQL server cannot be reached")
	errOldServer  = fmt.Errorf("the PostgreSQL server is too old: version %d or newer is needed", oldestPostgres)
)

// connect opens a pool and proves that the server answers.
func connect(ctx context.Context, c *pgxpool.Config) (*pgxpool.Pool, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), c)
	if err != nil {
		return nil, errURL
	}
	var version int
	err = pool.QueryRow(ctx, "SELECT current_setting('server_version_num')::int / 10000").Scan(&version)
	if err == nil && version < oldestPostgres {
		err = errOldServer
	}
	if err != nil {
		pool.Close()
		return nil, greeting(err)
	}
	return pool, nil
}

// greeting says in one line why there is no connection. The driver's own words
// name the user and every address that was tried.
func greeting(err error) error {
	if errors.Is(err, errOldServer) {
		return err
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case strings.HasPrefix(refusal.Code, "28"):
			return errLogin
		case refusal.Code == "3D000":
			return errNoDatabase
		}
		return fmt.Errorf("%w: it answers %s", errNoServer, refusal.Message)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && !op.Timeout() {
		return fmt.Errorf("%w: %w", errNoServer, op.Err)
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("%w: %s", errNoServer, name.Err)
	}
	if errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) {
		return fmt.Errorf("%w: it does not answer", errNoServer)
	}
	return fmt.Errorf("%w", errNoServer)
}

// sqlState is the code of a server's refusal, empty for any other error.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// The refusals that we act on.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	uniqueViolation      = "23505"
	transactionAborted   = "25P02"
	// A table has got a column since the statement was prepared; the next time it
	// is prepared anew.
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
	case "57P01", "57P02", "57P03", "57P05", "25P03": // it shuts down or starts up, or ended our session
		return true
	default:
		return strings.HasPrefix(code, "08")
	}
}

// passing reports whether the server is in a state that passes: out of some
// resource, a lock or statement that took too long, a standby.
func passing(err error) bool {
	switch code := sqlState(err); code {
	case "55P03", "57014", "25006", serializationFailure, deadlockDetected, planChanged:
		return true
	default:
		return strings.HasPrefix(code, "53") || strings.HasPrefix(code, "58")
	}
}

// fault marks failures of the server and of the way to it. A caller that left is
// none of them, though the driver may call its connection a bad one then: it does
// so for every statement that it did not send.
func (e *postgresEngine) fault(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, domain.ErrUnavailable), errors.Is(err, context.Canceled):
		return err
	case ctx.Err() != nil && (lost(err) || passing(err)):
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	case lost(err):
		e.forget()
		return unavailable("database", err)
	case passing(err):
		return unavailable("database", err)
	}
	return err
}
