package storage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/domain/webhook"
)

// outbox keeps what webhooks are told.
type outbox struct{ *tx }

func (r outbox) Append(_ context.Context, e webhook.Event) error {
	data, err := json.Marshal(e.Data)
	if err != nil {
		return fmt.Errorf("append event %s: %w", e.ID, err)
	}
	return r.later("append event "+e.ID, `INSERT INTO outbox (id, agent_id, type, at, data) VALUES (?1, ?2, ?3, ?4, ?5)`,
		e.ID, e.AgentID, string(e.Type), micros(e.At), string(data))
}

func (r outbox) Event(_ context.Context, id string) (webhook.Event, error) {
	e, err := scanWebhookEvent(r.row(`SELECT id, agent_id, type, at, data FROM outbox WHERE id = ?1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return webhook.Event{}, webhook.ErrNotFound
	}
	if err != nil {
		return webhook.Event{}, fmt.Errorf("read webhook event %s: %w", id, err)
	}
	return e, nil
}

const eventsOf = `SELECT id, agent_id, type, at, data FROM outbox WHERE agent_id = ?1
	ORDER BY seq DESC LIMIT ?2 OFFSET ?3`

func (r outbox) Events(
	ctx context.Context, agentID string, page domain.Page,
) (domain.List[webhook.Event], error) {
	list := domain.List[webhook.Event]{Page: page}
	err := r.row(`SELECT COUNT(*) FROM outbox WHERE agent_id = ?1`, agentID).Scan(&list.Total)
	if err == nil && list.Total > page.Offset() {
		list.Items, err = listed(ctx, r.tx, page.Size, scanWebhookEvent, eventsOf, agentID, page.Size, page.Offset())
	}
	if err != nil {
		return list, fmt.Errorf("list webhook events of %s: %w", agentID, err)
	}
	return list, nil
}

func scanWebhookEvent(row engine.Row) (e webhook.Event, err error) {
	var at int64
	var data string
	if err := row.Scan(&e.ID, &e.AgentID, &e.Type, &at, &data); err != nil {
		return e, err
	}
	e.At = fromMicros(at)
	if err := json.Unmarshal([]byte(data), &e.Data); err != nil {
		return e, fmt.Errorf("data of event %s: %w", e.ID, err)
	}
	return e, nil
}

// The order is the same in both, so that both take the same events.
const (
	oldEvents       = ` FROM outbox WHERE at < ?1 ORDER BY at, seq LIMIT ?2)`
	purgeDeliveries = `DELETE FROM webhook_deliveries WHERE event_id IN (SELECT id` + oldEvents
	purgeOutbox     = `DELETE FROM outbox WHERE seq IN (SELECT seq` + oldEvents
)

func (r outbox) Purge(_ context.Context, before time.Time, limit int) (int, error) {
	_, err := r.exec(purgeDeliveries, micros(before), limit)
	var n int64
	if err == nil {
		n, err = r.exec(purgeOutbox, micros(before), limit)
	}
	if err != nil {
		return 0, fmt.Errorf("purge webhook events: %w", err)
	}
	return int(n), nil
}
