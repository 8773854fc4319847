package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The bounds of the backoff after a lost connection, the time without a notification after which the server is
// asked whether it answers, and for how long it is waited for. Nothing else uses the connection, and the question
// needs no table, so a server that is merely busy answers it.
const (
	listenBackoff    = 100 * time.Millisecond
	maxListenBackoff = 5 * time.Second
	listenCheck      = time.Second
	answerWithin     = 3 * time.Second
)

// Listen calls notify when another process may have committed a change, until ctx ends. It logs a
// lost connection and opens another. While it runs a server that stopped to answer without closing its
// connections, such as that of a host that froze or lost its network, is noticed: the connections to it
// are given up. Without a database it returns at once.
func (d *Database) Listen(ctx context.Context, log *slog.Logger, notify func()) {
	if d == nil {
		return
	}
	pause := listenBackoff
	for ctx.Err() == nil {
		err := d.listen(ctx, log, func() {
			pause = listenBackoff
			notify()
		})
		if ctx.Err() != nil {
			return
		}
		if pause == listenBackoff {
			log.Warn("changes of other processes are noticed late", "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, maxListenBackoff)
	}
}

// listen waits for notifications on a connection of its own until that fails.
func (d *Database) listen(ctx context.Context, log *slog.Logger, notify func()) error {
	c := d.pool.Config().ConnConfig
	d.servers.order(&c.Config)
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), d.Patience)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN agentproxy_changes"); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	notify() // of what was committed before
	for {
		soon, cancel := context.WithTimeout(ctx, listenCheck)
		_, err := conn.WaitForNotification(soon)
		cancel()
		switch {
		case err == nil:
			notify()
		case ctx.Err() != nil || !pgconn.Timeout(err):
			return fmt.Errorf("listen: %w", err)
		default: // no notification, or a lost connection
			soon, cancel := context.WithTimeout(ctx, answerWithin)
			err := conn.Ping(soon)
			silent := soon.Err() != nil && ctx.Err() == nil
			cancel()
			if silent {
				log.Warn("the database server does not answer: its connections are given up", "within", answerWithin)
				d.servers.silent(conn.PgConn())
				d.losses.giveUp()
			}
			if err != nil {
				return fmt.Errorf("listen: %w", err)
			}
		}
	}
}
