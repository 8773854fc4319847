package payments

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// devchain keeps the blocks of the development chain.
type devchain struct{ *work.Unit }

// Devchain returns the development chain in a unit.
func Devchain(u *work.Unit) ports.Devchain { return devchain{u} }

// genesisRow is the row of devchain_genesis. Its numbers are microseconds, and 0 is a time.
type genesisRow struct {
	ID    int
	At    int64
	Every int64
}

func (genesisRow) TableName() string { return "devchain_genesis" }

func (r devchain) Genesis(ctx context.Context) (at time.Time, every time.Duration, set bool, err error) {
	// Before SetGenesis there is no row to lock.
	r.Serialize("devchain")
	var row genesisRow
	if set, err = work.One(r.Locked(ctx), &row); err != nil || !set {
		return time.Time{}, 0, false, work.Wrap("read genesis", err)
	}
	return time.UnixMicro(row.At).UTC(), time.Duration(row.Every) * time.Microsecond, true, nil
}

func (r devchain) SetGenesis(ctx context.Context, at time.Time, every time.Duration) error {
	row := genesisRow{ID: 1, At: at.UnixMicro(), Every: every.Microseconds()}
	_, err := r.Written(r.Write(ctx).Clauses(clause.OnConflict{UpdateAll: true}).Create(&row))
	return work.Wrap("set genesis", err)
}

// devTransferRow is a row of devchain_transfers.
type devTransferRow struct {
	recharge.Key `gorm:"embedded"`
	From         string `gorm:"column:from_address"`
	To           string `gorm:"column:to_address"`
	Amount       domain.Money
	Block        int64
	BlockTime    time.Time `gorm:"serializer:micros"`
}

func (devTransferRow) TableName() string { return "devchain_transfers" }

func fromDevTransferRow(r devTransferRow) recharge.Transfer {
	return recharge.Transfer{Key: r.Key, From: r.From, To: r.To, Amount: r.Amount, Block: r.Block, BlockTime: r.BlockTime}
}

func (r devchain) Append(ctx context.Context, t recharge.Transfer) error {
	row := devTransferRow{Key: t.Key, From: t.From, To: t.To, Amount: t.Amount, Block: t.Block, BlockTime: t.BlockTime}
	_, err := r.Written(r.Write(ctx).Create(&row))
	return work.Wrap("append transfer "+t.TxID, err)
}

func (r devchain) Blocks(ctx context.Context, first, last int64) ([]recharge.Transfer, error) {
	return r.list(r.ORM(ctx).Where("block >= ? AND block <= ?", first, last))
}

func (r devchain) Transaction(ctx context.Context, txID string) ([]recharge.Transfer, error) {
	return r.list(r.ORM(ctx).Where("tx_id = ?", txID))
}

// Touching repeats the conditions, so that both halves are found in an index.
func (r devchain) Touching(ctx context.Context, address string, from int64) ([]recharge.Transfer, error) {
	return r.list(r.ORM(ctx).Where("to_address = ? AND block >= ?", address, from).
		Or("from_address = ? AND block >= ?", address, from))
}

func (r devchain) list(query *gorm.DB) ([]recharge.Transfer, error) {
	list, err := work.All(query.Order(inChainOrder), fromDevTransferRow)
	return list, work.Wrap("list transfers of the development chain", err)
}
