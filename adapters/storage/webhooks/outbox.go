package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// outbox keeps the events of webhooks.
type outbox struct{ *work.Unit }

// Outbox returns the events of webhooks in a unit.
func Outbox(u *work.Unit) ports.Outbox { return outbox{u} }

// outboxRow is a row of outbox.
type outboxRow struct {
	ID      string
	AgentID string
	Type    webhook.Type
	At      time.Time `gorm:"serializer:micros"`
	Data    string    // JSON
}

func (outboxRow) TableName() string { return "outbox" }

func (r outbox) Append(_ context.Context, e webhook.Event) error {
	row := newEvent{e.ID, e.AgentID, string(e.Type), column.Micros(e.At), encode(e.Data), e.Data["session_id"], !e.Unsent}
	r.NoteEvent(e.AgentID)
	return events.Insert(r.Set, row)
}

// heldAfter is for how long an event may be held up by transactions under way before those of other databases of the
// server are distinguished from those that may still write one in front of it.
const heldAfter = 500 * time.Millisecond

func (r outbox) Feed(ctx context.Context, q ports.FeedQuery) (ports.FeedPage, error) {
	feed := r.Database.Feed
	page, held, err := r.feedTo(ctx, q, feed.End)
	if err == nil && feed.Held != "" && page.Later && len(page.Events) == 0 && r.Database.Now().Sub(held) >= heldAfter {
		page, _, err = r.feedTo(ctx, q, feed.Held)
	}
	return page, err
}

// feedTo reads the events in front of an end, and the end, by one statement, so that they are of one moment. held is
// the time of the oldest event that is not in front of it yet.
func (r outbox) feedTo(ctx context.Context, q ports.FeedQuery, to string) (
	page ports.FeedPage, held time.Time, err error,
) {
	feed := r.Database.Feed
	types, size := work.In(4, len(q.Types))
	args := []any{q.AgentID, q.After, q.Limit}
	for i := range size {
		args = append(args, string(q.Types[min(i, len(q.Types)-1)]))
	}
	ofKey := ""
	if q.Key != "" {
		args = append(args, q.Key)
		ofKey = " AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = outbox.session_id AND s.agent_id = ?1" +
			" AND s.bought_by = ?" + strconv.Itoa(len(args)) + ")"
	}
	query := ""
	for _, part := range feed.Of("?1") {
		query += "SELECT e.place, e.id, e.type, e.at, e.data, 0 FROM (SELECT " + part.Place +
			" AS place, id, type, at, data FROM " + part.From + " AND " + part.Place + " > ?2 AND " + part.Place + " < " + to +
			" AND type IN " + types + ofKey + " ORDER BY " + part.Place + " LIMIT ?3) e UNION ALL "
	}
	query += "SELECT " + to + ", '', '', (SELECT COALESCE(MIN(at), 0) FROM outbox WHERE agent_id = ?1 AND " + feed.Place +
		" > ?2 AND " + feed.Place + " >= " + to + " AND " + feed.Place + " < " + feed.Begun + "), '', " + feed.Begun
	var last, end, begun int64
	err = r.Rows(ctx, query, args, func(row engine.Row) error {
		var place, at, limit int64
		var data string
		e := webhook.Event{AgentID: q.AgentID}
		if err := row.Scan(&place, &e.ID, &e.Type, &at, &data, &limit); err != nil {
			return err
		}
		if e.ID == "" {
			end, begun, page.Later, held = place, limit, at > 0, column.Time(at)
			return nil
		}
		if len(page.Events) == q.Limit { // each part has as many
			return nil
		}
		last, e.At = place, column.Time(at)
		page.Events = append(page.Events, e)
		return json.Unmarshal([]byte(data), &page.Events[len(page.Events)-1].Data)
	})
	switch {
	case err != nil:
		return ports.FeedPage{}, held, fmt.Errorf("read the events of %s: %w", q.AgentID, r.Failed(err))
	case q.After >= begun:
		return ports.FeedPage{}, held, ports.ErrMissed
	}
	if page.Next = max(q.After, end-1); len(page.Events) == q.Limit {
		page.Next = last
	}
	return page, held, nil
}

func (r outbox) Event(ctx context.Context, id string) (webhook.Event, error) {
	var row outboxRow
	found, err := work.One(r.ORM(ctx).Where("id = ? AND sent = 1", id), &row)
	if err != nil {
		return webhook.Event{}, fmt.Errorf("read webhook event %s: %w", id, err)
	}
	if !found {
		return webhook.Event{}, webhook.ErrNotFound
	}
	e := webhook.Event{ID: row.ID, AgentID: row.AgentID, Type: row.Type, At: row.At}
	if err := json.Unmarshal([]byte(row.Data), &e.Data); err != nil {
		return webhook.Event{}, fmt.Errorf("data of webhook event %s: %w", id, err)
	}
	return e, nil
}

// Purge selects the same events for both tables. They have about the order of their times, of which there is no index.
func (r outbox) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	old := func(name string) any {
		first := r.ORM(ctx).Model(&outboxRow{}).Select("seq, id, at").Where("seq > 0").Order("seq").Limit(limit)
		return r.ORM(ctx).Table("(?) AS first", first).Select(name).Where("at < ?", column.Micros(before))
	}
	if mark := r.Database.Feed.Mark; mark != "" {
		if _, err := r.Exec(mark, column.Micros(before)); err != nil {
			return 0, fmt.Errorf("mark the newest place of an event: %w", err)
		}
	}
	_, err := r.Written(r.Write(ctx).Where("event_id IN (?)", old("id")).Delete(&deliveryRow{}))
	var n int64
	if err == nil {
		n, err = r.Written(r.Write(ctx).Where("seq IN (?)", old("seq")).Delete(&outboxRow{}))
	}
	return int(n), work.Wrap("purge webhook events", err)
}

func (r outbox) PurgeRefused(ctx context.Context, before time.Time, limit int) (int, error) {
	var ids []string
	err := r.Locked(ctx).Model(&deliveryRow{}).
		Where("status = 'failed' AND attempts = 0 AND created_at < ?", column.Micros(before)).
		Order("created_at").Limit(limit).Pluck("event_id", &ids).Error
	if err == nil && len(ids) > 0 {
		_, err = r.Written(r.Write(ctx).Where("event_id IN (?)", ids).Delete(&deliveryRow{}))
	}
	return len(ids), work.Wrap("purge refused deliveries", err)
}
