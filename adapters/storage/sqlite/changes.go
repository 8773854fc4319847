package sqlite

import (
	"context"
	"errors"
	"strconv"

	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

// LastChange returns the cursor behind everything that is committed: the highest number.
func (d *Database) LastChange(c engine.Conn) (last ports.Cursor, err error) {
	err = c.Row("SELECT CAST(COALESCE(MAX(seq), 0) AS TEXT) FROM changes", nil).Scan(&last)
	return last, err
}

// ChangesSince reads the numbers that follow a cursor. They have no gap: transactions write one
// after the other, and a number that was not committed is used again. When the next one is
// missing, it was purged.
func (d *Database) ChangesSince(
	ctx context.Context, c engine.Conn, after ports.Cursor, limit int,
) (list []ports.Change, next ports.Cursor, err error) {
	last, err := strconv.ParseInt(string(after), 10, 64)
	if err != nil {
		return nil, "", err
	}
	missed := false
	err = c.Rows(ctx, "SELECT seq, agent_id, session_id FROM changes WHERE seq > ?1 ORDER BY seq LIMIT ?2",
		[]any{last, limit + 1}, func(rows engine.Row) error {
			var change ports.Change
			seq := last
			err := rows.Scan(&seq, &change.Agent, &change.Session)
			missed = missed || seq != last+1
			last, list = seq, append(list, change)
			return err
		})
	switch {
	case err != nil:
		return nil, "", err
	case missed || len(list) > limit:
		next, err = d.LastChange(c)
		return nil, next, errors.Join(err, ports.ErrMissed)
	}
	return list, ports.Cursor(strconv.FormatInt(last, 10)), nil
}

// PurgeChanges returns the statement that removes up to ?2 changes from before ?1, the oldest
// first. It keeps the newest, from which the numbers go on.
func (d *Database) PurgeChanges() string {
	return `DELETE FROM changes WHERE seq IN (SELECT seq FROM changes
		WHERE at < ?1 AND seq < (SELECT MAX(seq) FROM changes) ORDER BY seq LIMIT ?2)`
}

// MonthOf returns the expression for the start of the UTC month of a time, both in microseconds since 1970.
func (d *Database) MonthOf(at string) string {
	return "CAST(strftime('%s', " + at + " / 1000000, 'unixepoch', 'start of month') AS INTEGER) * 1000000"
}
