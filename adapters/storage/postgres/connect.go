package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// URL is the connection URL of a PostgreSQL database. It may hold a password, so its text is hidden
// wherever it is printed.
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

// Check returns an error, which does not repeat the URL, if it is not that of a PostgreSQL database.
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

// The bounds of work on PostgreSQL. Every wait has one: for a connection, a lock, a statement, the
// next statement of a unit, and the server.
const (
	connectWithin   = 10 * time.Second // at the start
	dialWithin      = 4 * time.Second
	connWithin      = 2 * time.Second  // for a free connection, at least what the URL allows a dial
	unitWithin      = 15 * time.Second // at least three times statement_timeout
	auditWithin     = 30 * time.Minute
	oldestPostgres  = 13
	connectionLives = time.Hour
)

// limits bound what one connection does. Times are in milliseconds. Statements are short: compiling one, as
// PostgreSQL does if its plan is estimated to cost much, takes longer than to execute it.
var limits = map[string]string{
	"statement_timeout":                   "5000",
	"lock_timeout":                        "2000",
	"idle_in_transaction_session_timeout": "10000",
	"application_name":                    "agentproxy",
	"jit":                                 "off",
}

// required are the settings that the service depends on, whatever the defaults of the server, the
// database, the role or the URL: units lock rows and read them again, which a snapshot of the whole
// transaction would not show, and a commit that was reported must survive a crash of the server.
var required = map[string]string{
	"default_transaction_isolation": "read committed",
	"synchronous_commit":            "on",
}

// poolConfig returns the configuration of the pool. Limits that the URL sets take precedence.
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
	maps.Copy(c.ConnConfig.RuntimeParams, required)
	c.MaxConns = int32(conns)
	c.MaxConnLifetime, c.MaxConnLifetimeJitter = connectionLives, connectionLives/10
	return c, nil
}

// The errors of a connection at the start. They hold no secret.
var (
	errLogin      = errors.New("the PostgreSQL server refuses the user or the password")
	errNoDatabase = errors.New("the PostgreSQL server has no such database")
	errNoServer   = errors.New("the PostgreSQL server cannot be reached")
	errOldServer  = fmt.Errorf("the PostgreSQL server is too old: version %d or newer is needed", oldestPostgres)
)

// connect opens a pool, checks that the server answers, and returns for how long it lets a statement run.
func connect(ctx context.Context, c *pgxpool.Config) (*pgxpool.Pool, time.Duration, error) {
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = dialWithin
	}
	ctx, cancel := context.WithTimeout(ctx, max(connectWithin, c.ConnConfig.ConnectTimeout))
	defer cancel()
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), c)
	if err != nil {
		return nil, 0, errURL
	}
	var version int
	var statement int64 // milliseconds
	err = pool.QueryRow(ctx, "SELECT current_setting('server_version_num')::int / 10000, "+
		"(SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout')").Scan(&version, &statement)
	if err == nil && version < oldestPostgres {
		err = errOldServer
	}
	if err != nil {
		pool.Close()
		return nil, 0, connectError(err)
	}
	return pool, time.Duration(statement) * time.Millisecond, nil
}

// connectError returns the reason in one line. The driver's own error names the user and every
// address that was tried.
func connectError(err error) error {
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
