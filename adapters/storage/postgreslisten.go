package storage

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// How long after a lost connection Listen tries again, and how long a silent one
// is trusted.
const (
	listenAgain = 100 * time.Millisecond
	listenLate  = 5 * time.Second
	listenCheck = 30 * time.Second
)

// Listen calls heard when another process may have committed a change, at once,
// until ctx ends. It must not block. A store that cannot tell, which is SQLite,
// returns: there is Since to ask.
func (s *Store) Listen(ctx context.Context, heard func()) {
	e, ok := s.engine.(*postgresEngine)
	if !ok {
		return
	}
	pause := listenAgain
	for ctx.Err() == nil {
		err := e.listen(ctx, func() {
			pause = listenAgain
			heard()
		})
		if ctx.Err() != nil {
			return
		}
		if pause == listenAgain {
			s.config.Logger.Warn("changes of other processes are heard late", "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, listenLate)
	}
}

// listen waits for notices on a connection of its own, for as long as that holds.
func (e *postgresEngine) listen(ctx context.Context, heard func()) error {
	conn, err := pgx.ConnectConfig(ctx, e.pool.Config().ConnConfig)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), connWithin)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN agentproxy_changes"); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	heard() // what came while nobody listened
	for {
		soon, cancel := context.WithTimeout(ctx, listenCheck)
		_, err := conn.WaitForNotification(soon)
		cancel()
		switch {
		case err == nil:
			heard()
		case ctx.Err() != nil || !pgconn.Timeout(err):
			return fmt.Errorf("listen: %w", err)
		default: // all is quiet, or the way is cut
			soon, cancel := context.WithTimeout(ctx, connWithin)
			err := conn.Ping(soon)
			cancel()
			if err != nil {
				return fmt.Errorf("listen: %w", err)
			}
		}
	}
}
