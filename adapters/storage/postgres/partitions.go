package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// The event log has a partition a day: event_chunks_d20779 has what was stored on the 20,779th day since
// 1970, UTC. event_chunks_rest is the default partition, for days that have none.
const (
	eventTable      = "event_chunks"
	partitionPrefix = eventTable + "_d"
	// DefaultPartition is the default partition.
	DefaultPartition = eventTable + "_rest"

	// Partitions are made feedAhead days ahead once fewer than feedLeast are left, so that rarely one is
	// attached: that reads the default partition, whose rows must not belong into the new one.
	madeAhead, leastAhead = 14, 3
)

const oneDay = 24 * time.Hour

// KeepPartitions makes the partitions of the days that come and drops those whose days ended before a time. A
// partition whose lock is not granted at once is left to the next call.
func (d *Database) KeepPartitions(ctx context.Context, now, before time.Time) (made, dropped int, err error) {
	today, first := dayOf(now), dayOf(before)
	days, err := d.partitionDays(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("list the partitions of the event log: %w", err)
	}
	ahead := 0
	for day := range days {
		if day < first {
			if err := d.define(ctx, "DROP TABLE "+partitionPrefix+strconv.FormatInt(day, 10)); err != nil {
				return made, dropped, fmt.Errorf("drop a day of the event log: %w", err)
			}
			dropped++
		} else if day > today {
			ahead++
		}
	}
	if ahead >= leastAhead {
		return made, dropped, nil
	}
	// Not for today: the default partition may have rows of it.
	for day := today + 1; day <= today+madeAhead; day++ {
		if days[day] {
			continue
		}
		name := partitionPrefix + strconv.FormatInt(day, 10)
		err := d.define(ctx, "CREATE TABLE "+name+" (LIKE "+DefaultPartition+" INCLUDING ALL)",
			fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)", eventTable, name, day, day+1))
		if err != nil {
			return made, dropped, fmt.Errorf("make a day of the event log: %w", err)
		}
		made++
	}
	return made, dropped, nil
}

func dayOf(t time.Time) int64 { return t.Unix() / int64(oneDay/time.Second) }

func (d *Database) partitionDays(ctx context.Context) (map[int64]bool, error) {
	rows, err := d.pool.Query(ctx, `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = $1::regclass`, eventTable)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	days := map[int64]bool{}
	for _, name := range names {
		if day, wrong := strconv.ParseInt(strings.TrimPrefix(name, partitionPrefix), 10, 64); wrong == nil {
			days[day] = true
		}
	}
	return days, err
}

// define runs statements that change the schema, in a transaction that does not wait for locks: what
// queues behind a lock that waits is every query of the table.
func (d *Database) define(ctx context.Context, statements ...string) error {
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		for _, s := range append([]string{"SET LOCAL lock_timeout = '300ms'"}, statements...) {
			if _, err := tx.Exec(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}
