package payments

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

// asideRow is a row of recharge_aside.
type asideRow struct {
	recharge.Key `gorm:"embedded"`
	AgentID      string
	Amount       domain.Money
	Block        int64
	Reason       string
	SetAt        time.Time `gorm:"serializer:micros"`
	TriedAt      time.Time `gorm:"serializer:micros"`
	Tries        int
}

func (asideRow) TableName() string { return "recharge_aside" }

func fromAsideRow(r asideRow) recharge.Aside { return recharge.Aside(r) }

const setAside = `INSERT INTO recharge_aside
	(network, tx_id, log_index, agent_id, amount, block, reason, set_at, tried_at, tries)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, 1) ON CONFLICT (network, tx_id, log_index) DO UPDATE SET
	reason = excluded.reason, tried_at = excluded.tried_at, tries = recharge_aside.tries + 1`

func (r transfers) SetAside(_ context.Context, a recharge.Aside) error {
	return r.Later("set transfer "+a.TxID+" aside", setAside, a.Network, a.TxID, a.LogIndex, a.AgentID, int64(a.Amount),
		a.Block, a.Reason, column.Micros(a.TriedAt))
}

func (r transfers) TakeBack(_ context.Context, k recharge.Key) error {
	return r.Later("take transfer "+k.TxID+" back",
		"DELETE FROM recharge_aside WHERE network = ?1 AND tx_id = ?2 AND log_index = ?3", k.Network, k.TxID, k.LogIndex)
}

func (r transfers) Aside(
	ctx context.Context, network string, limit int,
) (list []recharge.Aside, total int, err error) {
	rows := r.ORM(ctx).Model(&asideRow{}).Where("network = ?", network)
	var n int64
	if err := rows.Session(&gorm.Session{}).Count(&n).Error; err != nil {
		return nil, 0, fmt.Errorf("count transfers that are set aside: %w", err)
	}
	if n > 0 && limit > 0 {
		list, err = work.All(rows.Session(&gorm.Session{}).Order("tried_at, tx_id, log_index").Limit(limit), fromAsideRow)
	}
	return list, int(n), work.Wrap("list transfers that are set aside", err)
}
