package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// webhooks keeps endpoints and deliveries.
type webhooks struct{ *tx }

// endpointOf begins with the agent: one whose events were never sent has no
// state, which is the state of an endpoint that works.
const endpointOf = `SELECT a.webhook_url, a.webhook_version, COALESCE(s.rotated_at, 0), COALESCE(s.disabled_at, 0),
	COALESCE(s.failing_since, 0), COALESCE(s.last_delivery_at, 0)
	FROM agents a LEFT JOIN webhook_states s ON s.agent_id = a.id WHERE a.id = ?1`

// Endpoint locks the agent first, because a joined row is not read anew after a
// wait. The lock leaves those alone that only refer to the agent.
func (r webhooks) Endpoint(ctx context.Context, agentID string) (webhook.Endpoint, error) {
	if r.locks() {
		var one int
		err := r.row(`SELECT 1 FROM agents WHERE id = ?1 FOR NO KEY UPDATE`, agentID).Scan(&one)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return webhook.Endpoint{}, fmt.Errorf("lock webhook of %s: %w", agentID, err)
		}
	}
	return r.PeekEndpoint(ctx, agentID)
}

func (r webhooks) PeekEndpoint(_ context.Context, agentID string) (webhook.Endpoint, error) {
	e := webhook.Endpoint{AgentID: agentID}
	var rotated, disabled, failing, last int64
	err := r.row(endpointOf, agentID).Scan(&e.URL, &e.Version, &rotated, &disabled, &failing, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return webhook.Endpoint{}, account.ErrNotFound
	}
	if err != nil {
		return webhook.Endpoint{}, fmt.Errorf("read webhook of %s: %w", agentID, err)
	}
	e.RotatedAt, e.DisabledAt = fromMicros(rotated), fromMicros(disabled)
	e.FailingSince, e.LastDeliveryAt = fromMicros(failing), fromMicros(last)
	return e, nil
}

const putEndpoint = `INSERT INTO webhook_states (agent_id, rotated_at, disabled_at, failing_since, last_delivery_at)
	VALUES (?1, ?2, ?3, ?4, ?5)
	ON CONFLICT (agent_id) DO UPDATE SET rotated_at = excluded.rotated_at, disabled_at = excluded.disabled_at,
	failing_since = excluded.failing_since, last_delivery_at = excluded.last_delivery_at`

func (r webhooks) PutEndpoint(_ context.Context, e webhook.Endpoint) error {
	return r.later("write webhook of "+e.AgentID, putEndpoint, e.AgentID, micros(e.RotatedAt), micros(e.DisabledAt),
		micros(e.FailingSince), micros(e.LastDeliveryAt))
}

const deliveryColumns = `id, agent_id, event_id, type, status, attempts, tries, last_status_code, last_error,
	next_attempt_at, created_at`

func scanDelivery(row engine.Row) (d webhook.Delivery, err error) {
	var next, created int64
	err = row.Scan(&d.ID, &d.AgentID, &d.EventID, &d.Type, &d.Status, &d.Attempts, &d.Tries, &d.LastStatusCode,
		&d.LastError, &next, &created)
	d.NextAttemptAt, d.CreatedAt = fromMicros(next), fromMicros(created)
	return d, err
}

const insertDelivery = `INSERT INTO webhook_deliveries (` + deliveryColumns + `)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING`

func (r webhooks) InsertDelivery(_ context.Context, d webhook.Delivery) error {
	n, err := r.exec(insertDelivery, d.ID, d.AgentID, d.EventID, string(d.Type), string(d.Status), d.Attempts, d.Tries,
		d.LastStatusCode, d.LastError, micros(d.NextAttemptAt), micros(d.CreatedAt))
	if err != nil {
		return fmt.Errorf("insert delivery %s: %w", d.ID, err)
	}
	if n == 0 {
		return ports.ErrDuplicate
	}
	return nil
}

const loadDelivery = `SELECT ` + deliveryColumns + ` FROM webhook_deliveries WHERE id = ?1`

func (r webhooks) Delivery(_ context.Context, agentID, id string) (webhook.Delivery, error) {
	return oneDelivery(id, r.row(loadDelivery+` AND agent_id = ?2`+r.lock("webhook_deliveries"), id, agentID))
}

func (r webhooks) LoadDelivery(_ context.Context, id string) (webhook.Delivery, error) {
	return oneDelivery(id, r.row(loadDelivery+r.lock("webhook_deliveries"), id))
}

func oneDelivery(id string, row engine.Row) (webhook.Delivery, error) {
	d, err := scanDelivery(row)
	if errors.Is(err, sql.ErrNoRows) {
		return webhook.Delivery{}, webhook.ErrNotFound
	}
	if err != nil {
		return webhook.Delivery{}, fmt.Errorf("read delivery %s: %w", id, err)
	}
	return d, nil
}

const putDelivery = `UPDATE webhook_deliveries SET status = ?2, attempts = ?3, tries = ?4, last_status_code = ?5,
	last_error = ?6, next_attempt_at = ?7 WHERE id = ?1`

func (r webhooks) PutDelivery(_ context.Context, d webhook.Delivery) error {
	n, err := r.exec(putDelivery, d.ID, string(d.Status), d.Attempts, d.Tries, d.LastStatusCode, d.LastError,
		micros(d.NextAttemptAt))
	if err != nil {
		return fmt.Errorf("write delivery %s: %w", d.ID, err)
	}
	if n == 0 {
		return webhook.ErrNotFound
	}
	return nil
}

// deliveriesWhere are the conditions of a list of deliveries, from parameter 1 on.
func deliveriesWhere(agentID string, of webhook.Status) (string, []any) {
	if of == "" {
		return `agent_id = ?1`, []any{agentID}
	}
	return `agent_id = ?1 AND status = ?2`, []any{agentID, string(of)}
}

// pageOfDeliveries takes the limit and the offset as its last two parameters.
func pageOfDeliveries(where string, args int) string {
	return `SELECT ` + deliveryColumns + ` FROM webhook_deliveries WHERE ` + where + ` ORDER BY seq DESC LIMIT ?` +
		strconv.Itoa(args+1) + ` OFFSET ?` + strconv.Itoa(args+2)
}

func (r webhooks) Deliveries(
	ctx context.Context, agentID string, of webhook.Status, page domain.Page,
) (domain.List[webhook.Delivery], error) {
	list := domain.List[webhook.Delivery]{Page: page}
	where, args := deliveriesWhere(agentID, of)
	err := r.row(`SELECT COUNT(*) FROM webhook_deliveries WHERE `+where, args...).Scan(&list.Total)
	if err == nil && list.Total > page.Offset() {
		list.Items, err = listed(ctx, r.tx, page.Size, scanDelivery, pageOfDeliveries(where, len(args)),
			append(args, page.Size, page.Offset())...)
	}
	if err != nil {
		return list, fmt.Errorf("list deliveries of %s: %w", agentID, err)
	}
	return list, nil
}

const overdueDeliveries = `SELECT ` + deliveryColumns + ` FROM webhook_deliveries
	WHERE status = 'pending' AND next_attempt_at < ?1 ORDER BY next_attempt_at LIMIT ?2`

func (r webhooks) Overdue(ctx context.Context, before time.Time, limit int) ([]webhook.Delivery, error) {
	overdue, err := listed(ctx, r.tx, 0, scanDelivery, overdueDeliveries, micros(before), limit)
	if err != nil {
		return nil, fmt.Errorf("list deliveries that are overdue: %w", err)
	}
	return overdue, nil
}

const setMark = `INSERT INTO webhook_marks (agent_id, what, mark) VALUES (?1, ?2, ?3)
	ON CONFLICT (agent_id, what) DO UPDATE SET mark = excluded.mark WHERE webhook_marks.mark <> excluded.mark`

func (r webhooks) MarkNotified(_ context.Context, agentID, what string, to int64) (bool, error) {
	n, err := r.exec(setMark, agentID, what, to)
	if err != nil {
		return false, fmt.Errorf("mark %s of %s: %w", what, agentID, err)
	}
	return n > 0, nil
}

func (r webhooks) NotifiedUpTo(_ context.Context, agentID, what string) (mark int64, err error) {
	err = r.row(`SELECT mark FROM webhook_marks WHERE agent_id = ?1 AND what = ?2`, agentID, what).Scan(&mark)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read mark %s of %s: %w", what, agentID, err)
	}
	return mark, nil
}
