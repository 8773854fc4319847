package postgres

import (
	"context"
	"time"
)

// serverNow is the expression for the time at which the server received the statement, in
// microseconds since 1970.
const serverNow = "(EXTRACT(EPOCH FROM statement_timestamp()) * 1000000)::bigint"

// Now returns the expression for the time of the server in microseconds since 1970, "" without a database.
func (d *Database) Now() string {
	if d == nil {
		return ""
	}
	return serverNow
}

// readings is how many readings of the clock are tried for one that was quick.
const readings = 3

// ReadClock returns the time of the server, the moment of it by the monotonic clock of this process,
// and by how much it may be wrong: half of what the quickest of a few round trips took.
func (d *Database) ReadClock(ctx context.Context) (server, at time.Time, within time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.Patience)
	defer cancel()
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return server, at, 0, err
	}
	defer conn.Release()
	const quick = time.Millisecond
	for n := 0; n < readings && (n == 0 || within > quick); n++ {
		var micros int64
		sent := time.Now()
		if err := conn.QueryRow(ctx, "SELECT "+serverNow).Scan(&micros); err != nil {
			return server, at, 0, err
		}
		if half := time.Since(sent) / 2; n == 0 || half < within {
			server, at, within = time.UnixMicro(micros), sent.Add(half), half
		}
	}
	return server, at, within, nil
}
