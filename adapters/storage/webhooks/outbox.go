package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"agentproxy/adapters/storage/column"
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
	data, err := json.Marshal(e.Data)
	if err != nil {
		return fmt.Errorf("append event %s: %w", e.ID, err)
	}
	return events.Insert(r.Set, newEvent{e.ID, e.AgentID, string(e.Type), column.Micros(e.At), string(data)})
}

func (r outbox) Event(ctx context.Context, id string) (webhook.Event, error) {
	var row outboxRow
	found, err := work.One(r.ORM(ctx).Where("id = ?", id), &row)
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

// Purge selects the events in the same order for both tables, so that both lose the same.
func (r outbox) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	old := func(name string) any {
		return r.ORM(ctx).Model(&outboxRow{}).Select(name).
			Where("at < ?", column.Micros(before)).Order("at, seq").Limit(limit)
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
	if err == nil && len(ids) > 0 {
		_, err = r.Written(r.Write(ctx).Where("id IN (?)", ids).Delete(&outboxRow{}))
	}
	return len(ids), work.Wrap("purge refused deliveries", err)
}
