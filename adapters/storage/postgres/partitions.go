package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
// partition whose lock is not granted at once is left to the next call. Without a database there are none.
func (d *Database) KeepPartitions(ctx context.Context, now, before time.Time) (made, dropped int, err error) {
	if d == nil {
		return 0, 0, nil
	}
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
		err := d.define(ctx, "CREATE TABLE "+name+" (LIKE "+DefaultPartition+" INCLUDING ALL EXCLUDING INDEXES, "+
			"PRIMARY KEY (session, last_no) INCLUDE (n, last_at))",
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

// Space is what is known of the space that is left: SQL does not show the disk, so the operator declares how much the
// database may take, and the server names a disk that is full.
type Space struct {
	Capacity int64            // bytes; 0: not declared
	Now      func() time.Time // of this host
	size     func(context.Context) (int64, error)
	first    sync.Once
	reading  atomic.Bool
	used     atomic.Int64
	readAt   atomic.Int64 // microseconds since 1970; 0: never
	fullAt   atomic.Int64 // when the disk was full last
	failed   atomic.Pointer[error]
}

// A size is read again after sizeAge, and after sizeAgeLow while less than a tenth is left: a caller finds it old and
// goes on with it while another goroutine reads.
const (
	sizeAge    = 5 * time.Second
	sizeAgeLow = 500 * time.Millisecond
	sizeWithin = 5 * time.Second
	fullFor    = 5 * time.Minute
)

func (p *Space) noteFull() { p.fullAt.Store(p.Now().UnixMicro()) }

// DiskFull reports whether the server had no space left on its disk within the last five minutes.
func (p *Space) DiskFull() bool {
	at := p.fullAt.Load()
	return at != 0 && p.since(at) < fullFor
}

func (p *Space) since(micros int64) time.Duration { return p.Now().Sub(time.UnixMicro(micros)).Abs() }

// left returns the capacity less the size of the database, which may be below zero.
func (p *Space) left() (bytes int64, known bool, err error) {
	if p.Capacity <= 0 {
		return 0, false, nil
	}
	p.first.Do(p.read)
	left, age := p.Capacity-p.used.Load(), sizeAge
	if left < p.Capacity/10 {
		age = sizeAgeLow
	}
	if p.since(p.readAt.Load()) >= age && p.reading.CompareAndSwap(false, true) {
		go func() {
			defer p.reading.Store(false)
			p.read()
		}()
	}
	if failed := p.failed.Swap(nil); failed != nil {
		err = *failed // once
	}
	return left, true, err
}

func (p *Space) read() {
	ctx, cancel := context.WithTimeout(context.Background(), sizeWithin)
	defer cancel()
	size, err := p.size(ctx)
	if err != nil {
		err = fmt.Errorf("size of the database: %w", err)
		p.failed.Store(&err)
	} else {
		p.used.Store(size)
	}
	p.readAt.Store(p.Now().UnixMicro())
}

// Free returns how many bytes of the capacity are left.
func (p *Space) Free() (bytes uint64, known bool, err error) {
	left, known, err := p.left()
	return uint64(max(0, left)), known, err
}

// Scarce reports whether less than a twentieth of the capacity is left, or DiskFull.
func (p *Space) Scarce() (bool, error) {
	left, known, err := p.left()
	return p.DiskFull() || known && left < p.Capacity/20, err
}
