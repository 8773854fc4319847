package payments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

type recharges struct{ *work.Unit }

// Recharges returns the orders of recharges in a unit.
func Recharges(u *work.Unit) ports.Recharges { return recharges{u} }

// rechargeOrderRow is a row of recharge_orders.
type rechargeOrderRow struct {
	ID        string
	AgentID   string
	Network   string
	Address   string
	Amount    domain.Money
	Received  domain.Money
	Status    recharge.Status
	CreatedAt time.Time `gorm:"serializer:micros;autoCreateTime:false"`
	ExpiresAt time.Time `gorm:"serializer:micros"`
	PaidAt    time.Time `gorm:"serializer:micros"`
}

func (rechargeOrderRow) TableName() string { return "recharge_orders" }

func fromRechargeOrderRow(r rechargeOrderRow) recharge.Order { return recharge.Order(r) }

// isOpen holds for an open order. It repeats the text of the partial index, which is not used
// otherwise.
const isOpen = `status IN ('pending', 'confirming')`

func (r recharges) InsertOrder(ctx context.Context, o recharge.Order) error {
	row := rechargeOrderRow(o)
	if _, err := r.Written(r.Write(ctx).Create(&row)); err != nil {
		return fmt.Errorf("insert order %s: %w", o.ID, err)
	}
	return nil
}

func (r recharges) Order(ctx context.Context, agentID, id string) (recharge.Order, error) {
	return r.order(id, r.Locked(ctx).Where("id = ? AND agent_id = ?", id, agentID))
}

func (r recharges) LoadOrder(ctx context.Context, id string) (recharge.Order, error) {
	return r.order(id, r.Locked(ctx).Where("id = ?", id))
}

func (r recharges) order(id string, query *gorm.DB) (recharge.Order, error) {
	var row rechargeOrderRow
	found, err := work.One(query, &row)
	if err != nil {
		return recharge.Order{}, fmt.Errorf("read order %s: %w", id, err)
	}
	if !found {
		return recharge.Order{}, recharge.ErrNotFound
	}
	return recharge.Order(row), nil
}

func (r recharges) PutOrder(ctx context.Context, o recharge.Order) error {
	row := rechargeOrderRow(o)
	n, err := r.Written(r.Write(ctx).Model(&rechargeOrderRow{}).Where("id = ?", o.ID).
		Select("status", "received", "paid_at").Updates(&row))
	if err != nil {
		return fmt.Errorf("write order %s: %w", o.ID, err)
	}
	if n == 0 {
		return recharge.ErrNotFound
	}
	return nil
}

func (r recharges) Orders(
	ctx context.Context, agentID string, of recharge.Status, page domain.Page,
) (domain.List[recharge.Order], error) {
	list, err := work.PageOf(ctx, r.Unit, r.ORM(ctx), page, fromRechargeOrderRow, func(db *gorm.DB) *gorm.DB {
		// A struct of conditions leaves its zero fields out.
		return db.Where(&rechargeOrderRow{AgentID: agentID, Status: of})
	})
	if err != nil {
		return list, fmt.Errorf("list orders of %s: %w", agentID, err)
	}
	return list, nil
}

func (r recharges) OpenOrders(ctx context.Context, network, agentID string) (int, error) {
	var n int64
	err := r.ORM(ctx).Model(&rechargeOrderRow{}).Where("network = ? AND agent_id = ? AND "+isOpen, network, agentID).
		Count(&n).Error
	if err != nil {
		return 0, fmt.Errorf("count open orders of %s: %w", agentID, err)
	}
	return int(n), nil
}

// Payable reads two ranges of one index. As one query the database would read every order that ever
// expired.
func (r recharges) Payable(
	ctx context.Context, network, agentID string, closed time.Time,
) ([]recharge.Order, error) {
	open, err := work.All(r.Locked(ctx).
		Where("network = ? AND agent_id = ? AND "+isOpen, network, agentID), fromRechargeOrderRow)
	late, lateErr := work.All(r.Locked(ctx).
		Where("network = ? AND agent_id = ? AND status = 'expired' AND expires_at >= ?",
			network, agentID, column.Micros(closed)), fromRechargeOrderRow)
	if err := errors.Join(err, lateErr); err != nil {
		return nil, fmt.Errorf("list payable orders of %s: %w", agentID, err)
	}
	orders := append(open, late...)
	slices.SortFunc(orders, func(a, b recharge.Order) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return orders, nil
}

func (r recharges) Overdue(
	ctx context.Context, network string, before time.Time, limit int,
) (agents []string, err error) {
	err = r.ORM(ctx).Model(&rechargeOrderRow{}).
		Where("network = ? AND expires_at < ? AND "+isOpen, network, column.Micros(before)).
		Group("agent_id").Order("MIN(expires_at), agent_id").Limit(limit).Pluck("agent_id", &agents).Error
	if err != nil {
		return nil, fmt.Errorf("list agents with overdue orders: %w", err)
	}
	return agents, nil
}
