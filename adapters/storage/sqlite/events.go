package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"agentproxy/adapters/storage/engine"
)

// The events of agents are in outbox in the order of their numbers, and outbox_feeds has the numbers of each agent.
// They are listed there some hundred at a time: listed with each event they would change a page of the file for each
// agent of a commit. The row of no agent has the highest number that is listed; a feed looks at the events behind it
// one by one.
const listedTo = "(SELECT COALESCE(MAX(l.seq), 0) FROM outbox_feeds l WHERE l.agent_id = '')"

// listEach is how many events are left to be looked at before they are listed, and listMost how many are listed by a
// commit at most: a program from before it may have left many.
const listEach, listMost = 512, 4096

const listedUnknown = -1

// listEvents lists events by their agents if there are enough that are not, and returns up to where they are.
func (d *Database) listEvents(c *sql.Conn) (listed int64, err error) {
	var last int64
	const newest = "SELECT COALESCE(MAX(seq), 0) FROM outbox"
	if err := c.QueryRowContext(uninterrupted, newest).Scan(&last); err != nil {
		return 0, fmt.Errorf("read the number of the newest event: %w", err)
	}
	if last == 0 || d.listedTo != listedUnknown && last-d.listedTo < listEach {
		return d.listedTo, nil
	}
	err = c.QueryRowContext(uninterrupted, "SELECT "+listedTo+", COALESCE(MAX(seq), 0) FROM (SELECT seq FROM outbox "+
		"WHERE seq > "+listedTo+" ORDER BY seq LIMIT ?1)", listMost).Scan(&listed, &last)
	if err == nil && last-listed < listEach {
		return listed, nil
	}
	for _, s := range []string{
		`INSERT INTO outbox_feeds (agent_id, seq) SELECT agent_id, seq FROM outbox
			WHERE seq > ?1 AND seq <= ?2 AND agent_id <> '' ORDER BY agent_id, seq`,
		"INSERT INTO outbox_feeds (agent_id, seq) VALUES ('', ?2)",
		"DELETE FROM outbox_feeds WHERE agent_id = '' AND seq < ?2",
	} {
		if err == nil {
			_, err = c.ExecContext(uninterrupted, s, listed, last)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("list events by their agents: %w", err)
	}
	return last, nil
}

// Hints reports whether queries name partial indexes, because there are no statistics before ANALYZE.
func (d *Database) Hints() bool { return true }

// OldEvents returns the table of events that are removed as rows: all are.
func (d *Database) OldEvents() string { return "event_chunks" }

// Feed returns the order of events: by their numbers, which no transaction under way has. They go on from the highest
// in the table, whose row is never removed.
func (d *Database) Feed() engine.Feed {
	end := "(SELECT COALESCE(MAX(seq), 0) + 1 FROM outbox)"
	return engine.Feed{Place: "seq", End: end, Begun: end, Of: func(agent string) []engine.FeedPart {
		return []engine.FeedPart{
			{From: "outbox_feeds f CROSS JOIN outbox ON outbox.seq = f.seq WHERE f.agent_id = " + agent, Place: "f.seq"},
			{From: "outbox WHERE outbox.seq > " + listedTo + " AND +outbox.agent_id = " + agent, Place: "outbox.seq"},
		}
	}, Mark: `INSERT INTO outbox (id, agent_id, type, at, data, sent)
		SELECT '', '', '', 0, '{}', 0 FROM outbox
		WHERE seq = (SELECT MAX(seq) FROM outbox) AND agent_id <> '' AND at < ?1`}
}

// feedJump is how many events a lost database can have been ahead of the one that replaces it.
const feedJump = 1 << 32

// MendFeed does nothing: the numbers of events are the file's own.
func (d *Database) MendFeed(context.Context) error { return nil }

// RaiseFeed has the places of events go on behind all that this database, or one that it replaces, gave out.
func (d *Database) RaiseFeed(ctx context.Context) error {
	_, err := d.writer.ExecContext(ctx, `INSERT INTO outbox (seq, id, agent_id, type, at, data, sent)
		SELECT COALESCE(MAX(seq), 0) + ?1, '', '', '', 0, '{}', 0 FROM outbox`, feedJump)
	return err
}

// FeedHeld returns 0: there is one transaction at a time.
func (d *Database) FeedHeld(context.Context, time.Time) (time.Duration, error) { return 0, nil }
