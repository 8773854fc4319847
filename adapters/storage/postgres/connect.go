package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
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

// limits bound what one connection does. Times are in milliseconds. Statements are short: compiling one, as
// PostgreSQL does if its plan is estimated to cost much, takes longer than to execute it.
var limits = map[string]string{
	"statement_timeout":                   "5000",
	"lock_timeout":                        "2000",
	"idle_in_transaction_session_timeout": "10000",
	"jit":                                 "off",
}

// required are the settings that the service depends on, whatever the defaults of the server, the
// database, the role or the URL: units lock rows and read them again, which a snapshot of the whole
// transaction would not show, and a commit that was reported must survive a crash of the server.
var required = map[string]string{
	"default_transaction_isolation": "read committed",
	"synchronous_commit":            "on",
}

// session returns the statements that set up a session, and each setting with its value. A pooler such as
// PgBouncer accepts few of them at the start of a connection, and refuses or drops the others. Limits that the URL
// sets take precedence; others are those that a caller needs.
func session(c *pgx.ConnConfig, others map[string]string) (statements string, settings map[string]string) {
	settings = maps.Clone(limits)
	for name := range c.RuntimeParams {
		delete(settings, name)
	}
	maps.Copy(settings, required)
	maps.Copy(settings, others)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		delete(c.RuntimeParams, name)
		statements += "SET " + name + " = '" + settings[name] + "'; "
	}
	return statements, settings
}

// poolConfig returns the configuration of the pool.
func poolConfig(u URL, conns int) (*pgxpool.Config, error) {
	c, err := u.parse()
	if err != nil {
		return nil, err
	}
	if _, chosen := c.ConnConfig.RuntimeParams["application_name"]; !chosen {
		c.ConnConfig.RuntimeParams["application_name"] = "agentproxy"
	}
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = dialWithin
	}
	c.MaxConns = int32(conns)
	c.MaxConnLifetime, c.MaxConnLifetimeJitter = connectionLives, connectionLives/10
	return c, nil
}

// The errors of a connection at the start. They hold no secret.
var (
	errLogin      = errors.New("the PostgreSQL server refuses the user or the password")
	errNoDatabase = errors.New("the PostgreSQL server has no such database")
	errNoServer   = errors.New("the PostgreSQL server cannot be reached")
	errSettings   = errors.New("the PostgreSQL server, or a pooler before it, does not keep the settings of a session: " +
		"a pooler must have a server connection for each client (pool_mode = session)")
	errOldServer = fmt.Errorf("the PostgreSQL server is too old: version %d or newer is needed", oldestPostgres)
)

// connect opens a pool, checks that the server answers and has the settings in effect, and returns for how
// long it lets a statement run.
func connect(ctx context.Context, c *pgxpool.Config, settings map[string]string) (*pgxpool.Pool, time.Duration, error) {
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
	if err == nil {
		err = inEffect(ctx, pool, settings)
	}
	if err != nil {
		pool.Close()
		return nil, 0, connectError(err)
	}
	return pool, time.Duration(statement) * time.Millisecond, nil
}

// inEffect compares the settings of a session with those that it was set up with.
func inEffect(ctx context.Context, pool *pgxpool.Pool, settings map[string]string) error {
	if err := keepsSessions(ctx, pool); err != nil {
		return err
	}
	for name, want := range settings {
		var kept bool
		err := pool.QueryRow(ctx, "SELECT setting = $2 FROM pg_settings WHERE name = $1", name, want).Scan(&kept)
		if err != nil {
			return err
		}
		if !kept {
			return fmt.Errorf("%w: %s is not %s", errSettings, name, want)
		}
	}
	return nil
}

// keepsSessions refuses a pooler that gives its connections to the server to one client after the other, such as
// PgBouncer in transaction mode: what one client sets up is what another finds.
func keepsSessions(ctx context.Context, pool *pgxpool.Pool) error {
	if pool.Config().MaxConns < 2 {
		return nil
	}
	var conns [2]*pgxpool.Conn
	for i := range conns {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		conns[i] = conn
	}
	mark := rand.Text()
	results, err := conns[0].Conn().PgConn().Exec(ctx, "SET agentproxy.session = '"+mark+"'").ReadAll()
	if err == nil {
		results, err = conns[1].Conn().PgConn().Exec(ctx, "SELECT current_setting('agentproxy.session', true)").ReadAll()
	}
	switch {
	case err != nil:
		return err
	case len(results) == 1 && len(results[0].Rows) == 1 && string(results[0].Rows[0][0]) == mark:
		return errSettings
	}
	return nil
}

// connectError returns the reason in one line. The driver's own error names the user and every
// address that was tried.
func connectError(err error) error {
	for _, known := range []error{errOldServer, errSettings} {
		if errors.Is(err, known) {
			return err
		}
	}
	for _, refused := range []error{errReplaced, errOtherCluster} {
		if errors.Is(err, refused) {
			return refused
		}
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
