package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/webhook"
)

// outbox keeps what webhooks are told.
type outbox struct{ *tx }

func (r outbox) Append(_ context.Context, e webhook.Event) error {
	data, err := json.Marshal(e.Data)
	if err == nil {
		_, err = r.exec(`INSERT INTO outbox (id, agent_id, type, at, data) VALUES (?1, ?2, ?3, ?4, ?5)`,
			e.ID, e.AgentID, string(e.Type), micros(e.At), string(data))
	}
	if err != nil {
		return fmt.Errorf("append event %s: %w", e.ID, err)
	}
	return nil
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

func scanWebhookEvent(row cursor) (e webhook.Event, err error) {
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

const purgeOutbox = `DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE at < ?1 ORDER BY at LIMIT ?2)`

func (r outbox) Purge(_ context.Context, before time.Time, limit int) (int, error) {
	n, err := r.exec(purgeOutbox, micros(before), limit)
	if err != nil {
		return 0, fmt.Errorf("purge webhook events: %w", err)
	}
	return int(n), nil
}
