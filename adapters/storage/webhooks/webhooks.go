// Package webhooks keeps the endpoints of agents, the events for them and the attempts to send those.
package webhooks

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// webhooks keeps endpoints and deliveries.
type webhooks struct{ *work.Unit }

// Webhooks returns the endpoints and deliveries in a unit.
func Webhooks(u *work.Unit) ports.Webhooks { return webhooks{u} }

// SelectEndpoints reads the webhooks of agents a. One whose events were never sent has no state, which is the
// state of an endpoint that works.
const SelectEndpoints = `SELECT a.id, a.webhook_url, a.webhook_version, COALESCE(s.rotated_at, 0),
	COALESCE(s.disabled_at, 0), COALESCE(s.failing_since, 0), COALESCE(s.last_delivery_at, 0)
	FROM agents a LEFT JOIN webhook_states s ON s.agent_id = a.id `

// Endpoint locks the agent first, because a joined row is not read again after a wait. The lock does
// not block rows that refer to the agent.
func (r webhooks) Endpoint(ctx context.Context, agentID string) (webhook.Endpoint, error) {
	_ = r.LockFirst("lock webhook of "+agentID, `SELECT 1 FROM agents WHERE id = ?1 FOR NO KEY UPDATE`, agentID)
	return r.PeekEndpoint(ctx, agentID)
}

func (r webhooks) PeekEndpoint(_ context.Context, agentID string) (webhook.Endpoint, error) {
	e, found, err := Endpoints.Look(r.Set, agentID)
	if err == nil && !found {
		err = account.ErrNotFound
	}
	return e, err
}

// ScanEndpoint scans a row of SelectEndpoints.
func ScanEndpoint(found engine.Row) (webhook.Endpoint, error) {
	var row endpointOf
	err := found.Scan(row.targets()...)
	return row.endpoint(), err
}

// endpointRow is a row of webhook_states.
type endpointRow struct {
	AgentID        string    `gorm:"primaryKey"`
	RotatedAt      time.Time `gorm:"serializer:micros"`
	DisabledAt     time.Time `gorm:"serializer:micros"`
	FailingSince   time.Time `gorm:"serializer:micros"`
	LastDeliveryAt time.Time `gorm:"serializer:micros"`
}

func (endpointRow) TableName() string { return "webhook_states" }

func (r webhooks) PutEndpoint(ctx context.Context, e webhook.Endpoint) error {
	row := endpointRow{AgentID: e.AgentID, RotatedAt: e.RotatedAt, DisabledAt: e.DisabledAt,
		FailingSince: e.FailingSince, LastDeliveryAt: e.LastDeliveryAt}
	_, err := r.Written(r.Write(ctx).Clauses(clause.OnConflict{UpdateAll: true}).Create(&row))
	return work.Wrap("write webhook of "+e.AgentID, err)
}

// deliveryRow is a row of webhook_deliveries.
type deliveryRow struct {
	ID             string
	AgentID        string
	EventID        string
	Type           webhook.Type
	Status         webhook.Status
	Attempts       int
	Tries          int
	LastStatusCode int
	LastError      string
	NextAttemptAt  time.Time `gorm:"serializer:micros"`
	CreatedAt      time.Time `gorm:"serializer:micros;autoCreateTime:false"`
}

func (deliveryRow) TableName() string { return "webhook_deliveries" }

func fromDeliveryRow(r deliveryRow) webhook.Delivery { return webhook.Delivery(r) }

func (r webhooks) InsertDelivery(_ context.Context, d webhook.Delivery) error {
	_, found, err := deliveries.Get(r.Set, d.EventID)
	if err != nil {
		return err
	}
	if found {
		return ports.ErrDuplicate
	}
	if n, counted := Pending.Peek(r.Set, d.AgentID); counted && d.Status == webhook.Pending {
		if err := Pending.Put(r.Set, d.AgentID, n+1); err != nil {
			return err
		}
	}
	return deliveries.Put(r.Set, d.EventID, newDelivery{ID: d.ID, AgentID: d.AgentID,
		EventID: d.EventID, Type: string(d.Type), Status: string(d.Status), Attempts: int64(d.Attempts),
		Tries: int64(d.Tries), LastStatusCode: int64(d.LastStatusCode), LastError: d.LastError,
		NextAttemptAt: column.Micros(d.NextAttemptAt), CreatedAt: column.Micros(d.CreatedAt)})
}

func (r webhooks) Delivery(ctx context.Context, agentID, id string) (webhook.Delivery, error) {
	return r.delivery(id, r.Locked(ctx).Where("id = ? AND agent_id = ?", id, agentID))
}

func (r webhooks) LoadDelivery(ctx context.Context, id string) (webhook.Delivery, error) {
	return r.delivery(id, r.Locked(ctx).Where("id = ?", id))
}

func (r webhooks) delivery(id string, query *gorm.DB) (webhook.Delivery, error) {
	var row deliveryRow
	found, err := work.One(query, &row)
	if err != nil {
		return webhook.Delivery{}, fmt.Errorf("read delivery %s: %w", id, err)
	}
	if !found {
		return webhook.Delivery{}, webhook.ErrNotFound
	}
	return webhook.Delivery(row), nil
}

func (r webhooks) PutDelivery(ctx context.Context, d webhook.Delivery) error {
	row := deliveryRow(d)
	n, err := r.Written(r.Write(ctx).Model(&deliveryRow{}).Where("id = ?", d.ID).
		Select("status", "attempts", "tries", "last_status_code", "last_error", "next_attempt_at").Updates(&row))
	if err != nil {
		return fmt.Errorf("write delivery %s: %w", d.ID, err)
	}
	if n == 0 {
		return webhook.ErrNotFound
	}
	return nil
}

func (r webhooks) Deliveries(
	ctx context.Context, agentID string, of webhook.Status, page domain.Page,
) (domain.List[webhook.Delivery], error) {
	list, err := work.PageOf(ctx, r.Unit, r.ORM(ctx), page, fromDeliveryRow, func(db *gorm.DB) *gorm.DB {
		// A struct of conditions leaves its zero fields out.
		return db.Where("agent_id = ?", agentID).Where(&deliveryRow{Status: of})
	})
	return list, work.Wrap("list deliveries of "+agentID, err)
}

func (r webhooks) Pending(_ context.Context, agentID string, limit int) (int, error) {
	if limit > webhook.MaxPending {
		var n int
		err := r.Row(CountPending+"?1 AND status = 'pending' LIMIT ?2) d", agentID, limit).Scan(&n)
		return n, work.Wrap("count pending deliveries of "+agentID, err)
	}
	if err := r.Set.Flush(); err != nil { // what is counted
		return 0, err
	}
	n, _, err := Pending.Look(r.Set, agentID)
	return min(n, limit), err
}

func (r webhooks) Overdue(ctx context.Context, before time.Time, limit int) ([]webhook.Delivery, error) {
	overdue, err := work.All(r.ORM(ctx).Where("status = 'pending' AND next_attempt_at < ?", column.Micros(before)).
		Order("next_attempt_at").Limit(limit), fromDeliveryRow)
	return overdue, work.Wrap("list deliveries that are overdue", err)
}

// noticeRow is a row of webhook_marks.
type noticeRow struct {
	AgentID string `gorm:"primaryKey"`
	What    string `gorm:"primaryKey"`
	Mark    int64
}

func (noticeRow) TableName() string { return "webhook_marks" }

func (r webhooks) MarkNotified(_ context.Context, agentID, what string, to int64) (bool, error) {
	k := MarkKey{agentID, what}
	old, found, err := Marks.Get(r.Set, k)
	if err != nil || found && old == to {
		return false, err
	}
	return true, Marks.Put(r.Set, k, to)
}

func (r webhooks) NotifiedUpTo(ctx context.Context, agentID, what string) (int64, error) {
	var row noticeRow
	_, err := work.One(r.ORM(ctx).Where("agent_id = ? AND what = ?", agentID, what), &row)
	return row.Mark, work.Wrap("read mark "+what+" of "+agentID, err)
}
