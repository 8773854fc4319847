package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// feedLag is an event that a transaction under way holds up, the newest one when it was noticed; zero: none.
type feedLag struct {
	mu        sync.Mutex
	place, at int64
}

// FeedHeld returns how old the event is that transactions of this database hold up for longest, as far as earlier calls
// noticed; 0 if none is held up. It reads the newest event alone, as no index has those that are held up.
func (d *Database) FeedHeld(ctx context.Context, now time.Time) (time.Duration, error) {
	var place, at, end int64
	err := d.pool.QueryRow(ctx, "SELECT place, at, "+d.Feed().Held+" FROM outbox ORDER BY seq DESC LIMIT 1").
		Scan(&place, &at, &end)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, err
	}
	d.lag.mu.Lock()
	defer d.lag.mu.Unlock()
	if d.lag.place < end { // it is listed
		d.lag.place, d.lag.at = 0, 0
	}
	if d.lag.place == 0 && place >= end {
		d.lag.place, d.lag.at = place, at
	}
	if d.lag.place == 0 {
		return 0, nil
	}
	return max(0, now.Sub(time.UnixMicro(d.lag.at))), nil
}
