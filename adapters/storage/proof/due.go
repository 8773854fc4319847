package proof

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
)

// late is how much later than it is due what the leader does each minute is a fault.
const late = time.Hour

// due is what the leader must have done.
type due struct {
	seq     int64 // entries up to it must be proved,
	since   int64 // if they are as old as that
	before  int64 // and older than that
	settled int64 // what ended before it must be over; 0: not known
}

// has reports whether an entry must be proved.
func (d due) has(seq, at int64) bool { return seq <= d.seq && at >= d.since && at < d.before }

// dueOf returns what must have been done by the state of the proof. Without a state every old entry must be
// proved that was booked since there are proofs: who can remove the digests can remove the state.
func (p *Prover) dueOf(conn engine.Conn, state *proofState) (due, error) {
	now, new := p.clock.Now(), &state.New
	switch {
	case !new.At.IsZero():
		before := column.Micros(new.At.Add(-late))
		return due{seq: new.Mark, before: before, settled: before}, nil
	case state.stored:
		return due{seq: new.Mark, before: column.Micros(now.Add(-late))}, nil
	}
	query := "SELECT CAST(strftime('%s', tstamp) AS INTEGER) * 1000000"
	if p.postgres {
		query = "SELECT CAST(extract(epoch FROM tstamp) * 1000000 AS BIGINT)"
	}
	d := due{seq: math.MaxInt64, before: column.Micros(now.Add(-late))}
	err := conn.Row(query+" FROM goose_db_version WHERE version_id = 30 AND is_applied ORDER BY id DESC LIMIT 1", nil).
		Scan(&d.since)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err != nil {
		return d, fmt.Errorf("read since when there are proofs: %w", err)
	}
	return d, nil
}
