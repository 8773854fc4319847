package storage

import (
	"context"
	"fmt"
	"time"

	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

var _ ports.RateLimits = rateLimits{}

// RateLimits is where processes share their limits, nil on SQLite, which serves
// one process.
func (s *Store) RateLimits() ports.RateLimits {
	if e, ok := s.engine.(*postgresEngine); ok {
		return rateLimits{e}
	}
	return nil
}

// rateLimits runs single statements, each of which is its own transaction: the
// lock of a row that everybody wants is held for no round trip.
type rateLimits struct{ *postgresEngine }

// The server's clock is read when the statement arrives, so it is the same
// everywhere within. A statement that waited for another is behind the times,
// which takes nothing from anybody: a state is never set back to it.
const (
	serverNow = `(EXTRACT(EPOCH FROM statement_timestamp()) * 1000000)::bigint`
	farthest  = `120000000`
	// $2 is the interval, $3 the burst, $4 how many tokens. It is the arithmetic
	// of ratelimit.Ask.Of.
	presentTAT = `LEAST(GREATEST(r.tat, ` + serverNow + `), ` + serverNow + ` + ` + farthest + `)`
	tokens     = `GREATEST(LEAST($4::bigint, (` + serverNow + ` + $3::bigint - ` + presentTAT + `) / $2::bigint), 0)`
	allTokens  = `LEAST($4::bigint, $3::bigint / $2::bigint)`

	takeTokens = `INSERT INTO rate_limits AS r (key, tat, took)
		VALUES ($1, ` + serverNow + ` + $2::bigint * ` + allTokens + `, ` + allTokens + `)
		ON CONFLICT (key) DO UPDATE SET tat = ` + presentTAT + ` + $2::bigint * ` + tokens + `, took = ` + tokens + `
		RETURNING took, tat, ` + serverNow

	// Somebody may use a state between its choice and its removal.
	pastUse     = `tat < ` + serverNow + ` - ` + farthest
	purgeLimits = `DELETE FROM rate_limits WHERE ` + pastUse + ` AND key IN (
		SELECT key FROM rate_limits WHERE ` + pastUse + ` LIMIT $1 FOR UPDATE SKIP LOCKED)`
)

func (r rateLimits) Take(ctx context.Context, key string, ask ratelimit.Ask) (g ratelimit.Grant, err error) {
	var tat, now int64
	for try := 1; ; try++ {
		err = r.pool.QueryRow(ctx, takeTokens, key, ask.Interval.Microseconds(), ask.Burst.Microseconds(), max(ask.Tokens, 0)).
			Scan(&g.Tokens, &tat, &now)
		switch {
		case err == nil:
			g.TAT, g.Now = time.UnixMicro(tat).UTC(), time.UnixMicro(now).UTC()
			return g, nil
		case ctx.Err() == nil && lost(err) && try < maxTakes:
			r.forget() // taken twice, tokens are only missed
		case ctx.Err() != nil || !again(err, try):
			return ratelimit.Grant{}, r.fault(ctx, fmt.Errorf("take of a rate limit: %w", err))
		}
	}
}

// maxTakes is how many connections are tried: a server that was restarted has
// closed them all.
const maxTakes = 3

func (r rateLimits) Purge(ctx context.Context, limit int) (int, error) {
	done, err := r.pool.Exec(ctx, purgeLimits, limit)
	if err != nil {
		return 0, r.fault(ctx, fmt.Errorf("purge rate limits: %w", err))
	}
	return int(done.RowsAffected()), nil
}
