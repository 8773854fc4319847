package payments

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

type transfers struct{ *work.Unit }

// Transfers returns the transfers in a unit.
func Transfers(u *work.Unit) ports.Transfers { return transfers{u} }

// transferRow is a row of recharge_transfers.
type transferRow struct {
	recharge.Key `gorm:"embedded"`
	From         string `gorm:"column:from_address"`
	To           string `gorm:"column:to_address"`
	Amount       domain.Money
	Block        int64
	BlockTime    time.Time `gorm:"serializer:micros"`
	State        recharge.State
	Note         string
	AgentID      string
	OrderID      string
	FirstSeen    time.Time `gorm:"serializer:micros"`
}

func (transferRow) TableName() string { return "recharge_transfers" }

func toTransferRow(t recharge.Transfer) transferRow {
	return transferRow{Key: t.Key, From: t.From, To: t.To, Amount: t.Amount, Block: t.Block, BlockTime: t.BlockTime,
		State: t.State, Note: t.Note, AgentID: t.AgentID, OrderID: t.OrderID, FirstSeen: t.FirstSeen}
}

func fromTransferRow(r transferRow) recharge.Transfer {
	return recharge.Transfer{Key: r.Key, From: r.From, To: r.To, Amount: r.Amount, Block: r.Block, BlockTime: r.BlockTime,
		State: r.State, Note: r.Note, AgentID: r.AgentID, OrderID: r.OrderID, FirstSeen: r.FirstSeen}
}

func (r transfers) Transfer(ctx context.Context, k recharge.Key) (recharge.Transfer, bool, error) {
	var row transferRow
	found, err := work.One(r.Locked(ctx).Where("network = ? AND tx_id = ? AND log_index = ?",
		k.Network, k.TxID, k.LogIndex), &row)
	if err != nil {
		return recharge.Transfer{}, false, fmt.Errorf("read transfer %s: %w", k.TxID, err)
	}
	return fromTransferRow(row), found, nil
}

// onTransfer replaces what the chain or a settlement may change of a transfer, but not when it was
// first seen, and nothing of a final one.
var onTransfer = clause.OnConflict{
	Columns: []clause.Column{{Name: "network"}, {Name: "tx_id"}, {Name: "log_index"}},
	DoUpdates: clause.AssignmentColumns([]string{"from_address", "to_address", "amount", "block", "block_time", "state",
		"note", "agent_id", "order_id"}),
	Where: clause.Where{Exprs: []clause.Expression{gorm.Expr("recharge_transfers.state <> 'final'")}},
}

func (r transfers) PutTransfer(ctx context.Context, t recharge.Transfer) (bool, error) {
	row := toTransferRow(t)
	n, err := r.Written(r.Write(ctx).Clauses(onTransfer).Create(&row))
	if err != nil {
		return false, fmt.Errorf("write transfer %s: %w", t.TxID, err)
	}
	return n > 0, nil
}

// inChainOrder sorts as recharge.Compare does.
const inChainOrder = "block, log_index, tx_id"

func (r transfers) SeenOf(ctx context.Context, network, agentID string) ([]recharge.Transfer, error) {
	return r.transfers("seen of "+agentID,
		r.Locked(ctx).Where("network = ? AND agent_id = ? AND state = 'seen'", network, agentID))
}

func (r transfers) SeenUpTo(
	ctx context.Context, network string, block int64, limit int,
) ([]recharge.Transfer, error) {
	return r.transfers("seen",
		r.ORM(ctx).Where("network = ? AND block <= ? AND state = 'seen'", network, block).Limit(limit))
}

// OfOrder repeats the text of the partial index, which is not used otherwise.
func (r transfers) OfOrder(ctx context.Context, orderID string) ([]recharge.Transfer, error) {
	return r.transfers("of "+orderID,
		r.ORM(ctx).Where("order_id = ? AND order_id <> '' AND state IN ('seen', 'final')", orderID))
}

const knownSum = `SELECT
	(SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM recharge_transfers
		WHERE network = ?1 AND to_address = ?2 AND state = 'final') -
	(SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM recharge_transfers
		WHERE network = ?1 AND from_address = ?2 AND state = 'final')`

func (r transfers) Known(_ context.Context, network, address string) (sum domain.Money, err error) {
	if err := r.Row(knownSum, network, address).Scan(&sum); err != nil {
		return 0, fmt.Errorf("sum transfers of %s: %w", address, err)
	}
	return sum, nil
}

// FinalOf repeats the conditions, so that both halves are found in an index.
func (r transfers) FinalOf(
	ctx context.Context, network, address string, since time.Time,
) ([]recharge.Transfer, error) {
	from := column.Micros(since)
	return r.transfers("final of "+address, r.ORM(ctx).
		Where("network = ? AND to_address = ? AND state = 'final' AND block_time >= ?", network, address, from).
		Or("network = ? AND from_address = ? AND state = 'final' AND block_time >= ?", network, address, from))
}

// OwnMoves repeats the conditions of the partial index, which has these rows alone: what is ignored is never final.
func (r transfers) OwnMoves(
	ctx context.Context, network string, limit int,
) (list []recharge.Transfer, total int, err error) {
	moves := r.ORM(ctx).Model(&transferRow{}).Where("network = ? AND state = 'final' AND note <> ''", network)
	var n int64
	if err := moves.Session(&gorm.Session{}).Count(&n).Error; err != nil {
		return nil, 0, fmt.Errorf("count own moves: %w", err)
	}
	if n > 0 && limit > 0 {
		list, err = work.All(moves.Session(&gorm.Session{}).Order("block DESC, log_index DESC").Limit(limit), fromTransferRow)
	}
	return list, int(n), work.Wrap("list own moves", err)
}

func (r transfers) transfers(which string, query *gorm.DB) ([]recharge.Transfer, error) {
	found, err := work.All(query.Order(inChainOrder), fromTransferRow)
	if err != nil {
		return nil, fmt.Errorf("list transfers (%s): %w", which, err)
	}
	return found, nil
}

// cursorRow is a row of recharge_marks.
type cursorRow struct {
	Network     string
	FinalNumber int64
	FinalTime   time.Time `gorm:"serializer:micros"`
	Latest      int64
	ReadAt      time.Time `gorm:"serializer:micros"`
}

func (cursorRow) TableName() string { return "recharge_marks" }

func (r transfers) ScanCursor(ctx context.Context, network string) (recharge.ScanCursor, bool, error) {
	// Before the first there is no row to lock.
	r.Serialize("mark", network)
	var row cursorRow
	found, err := work.One(r.Locked(ctx).Where("network = ?", network), &row)
	if err != nil {
		return recharge.ScanCursor{}, false, fmt.Errorf("read cursor of %s: %w", network, err)
	}
	return recharge.ScanCursor{Final: recharge.Head{Number: row.FinalNumber, Time: row.FinalTime},
		Latest: row.Latest, ReadAt: row.ReadAt}, found, nil
}

// putCursor moves both parts of the final head together.
const putCursor = `INSERT INTO recharge_marks (network, final_number, final_time, latest, read_at)
	VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (network) DO UPDATE SET
	final_number = CASE WHEN ?6 = 1 OR excluded.final_number >= recharge_marks.final_number
		THEN excluded.final_number ELSE recharge_marks.final_number END,
	final_time = CASE WHEN ?6 = 1 OR excluded.final_number >= recharge_marks.final_number
		THEN excluded.final_time ELSE recharge_marks.final_time END,
	latest = excluded.latest, read_at = excluded.read_at`

func (r transfers) PutScanCursor(_ context.Context, network string, m recharge.ScanCursor, rescan bool) error {
	return r.Later("write cursor of "+network, putCursor,
		network, m.Final.Number, column.Micros(m.Final.Time), m.Latest, column.Micros(m.ReadAt), column.Flag(rescan))
}
