package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

var _ ports.RateLimits = rateLimits{}

// RateLimits returns the limits that processes share, nil without a database.
func (d *Database) RateLimits() ports.RateLimits {
	if d == nil {
		return nil
	}
	return rateLimits{d}
}

// rateLimits runs single statements, each of which is its own transaction, so that the lock of a
// contended row is held for no round trip.
type rateLimits struct{ *Database }

// The server's clock is read once, when the statement arrives. A statement that waited for another
// uses a time in the past, which costs no tokens: a state is never set back to it.
const (
	farthest = `120000000`
	// $2 is the interval, $3 the burst, $4 how many tokens. It is the arithmetic
	// of ratelimit.Request.TakeFrom.
	presentTAT = `LEAST(GREATEST(r.tat, ` + serverNow + `), ` + serverNow + ` + GREATEST(` + farthest + `, $3::bigint))`
	tokens     = `GREATEST(LEAST($4::bigint, (` + serverNow + ` + $3::bigint - ` + presentTAT + `) / $2::bigint), 0)`
	allTokens  = `LEAST($4::bigint, $3::bigint / $2::bigint)`

	takeTokens = `INSERT INTO rate_limits AS r (key, tat, took)
		VALUES ($1, ` + serverNow + ` + $2::bigint * ` + allTokens + `, ` + allTokens + `)
		ON CONFLICT (key) DO UPDATE SET tat = ` + presentTAT + ` + $2::bigint * ` + tokens + `, took = ` + tokens + `
		RETURNING took, tat, ` + serverNow

	// A state may be used between its selection and its removal. An array is selected once, where the planner
	// might run what follows IN once for each row.
	pastUse     = `tat < ` + serverNow + ` - ` + farthest
	purgeLimits = `DELETE FROM rate_limits WHERE ` + pastUse + ` AND key = ANY (ARRAY(
		SELECT key FROM rate_limits WHERE ` + pastUse + ` LIMIT $1 FOR UPDATE SKIP LOCKED))`
)

func (r rateLimits) Take(ctx context.Context, key string, ask ratelimit.Request) (g ratelimit.Grant, err error) {
	var tat, now int64
	var failed failures
	for {
		err = again(ctx, func() error { // tokens that were taken twice are lost
			return r.pool.QueryRow(ctx, takeTokens, key, ask.Interval.Microseconds(), ask.Burst.Microseconds(),
				max(ask.Tokens, 0)).Scan(&g.Tokens, &tat, &now)
		})
		switch {
		case err == nil:
			g.TAT, g.Now = time.UnixMicro(tat).UTC(), time.UnixMicro(now).UTC()
			return g, nil
		case ctx.Err() != nil || !failed.retry(err):
			return ratelimit.Grant{}, r.Classify(ctx, fmt.Errorf("take of a rate limit: %w", err))
		}
	}
}

func (r rateLimits) Purge(ctx context.Context, limit int) (int, error) {
	var done pgconn.CommandTag
	err := again(ctx, func() (err error) {
		done, err = r.pool.Exec(ctx, purgeLimits, limit)
		return err
	})
	if err != nil {
		return 0, r.Classify(ctx, fmt.Errorf("purge rate limits: %w", err))
	}
	return int(done.RowsAffected()), nil
}
