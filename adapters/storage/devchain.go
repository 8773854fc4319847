package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain/recharge"
)

// devchain keeps the blocks of the development chain.
type devchain struct{ *tx }

// Genesis may lie anywhere: 0 is a time here.
func (r devchain) Genesis(context.Context) (at time.Time, every time.Duration, set bool, err error) {
	// Before SetGenesis there is no row to lock.
	r.serialize("devchain")
	var start, step int64
	err = r.row(`SELECT at, every FROM devchain_genesis WHERE id = 1`+r.lock("devchain_genesis")).Scan(&start, &step)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, 0, false, nil
	}
	if err != nil {
		return time.Time{}, 0, false, fmt.Errorf("read genesis: %w", err)
	}
	return time.UnixMicro(start).UTC(), time.Duration(step) * time.Microsecond, true, nil
}

func (r devchain) SetGenesis(_ context.Context, at time.Time, every time.Duration) error {
	_, err := r.exec(`INSERT INTO devchain_genesis (id, at, every) VALUES (1, ?1, ?2)
		ON CONFLICT (id) DO UPDATE SET at = excluded.at, every = excluded.every`, at.UnixMicro(), every.Microseconds())
	if err != nil {
		return fmt.Errorf("set genesis: %w", err)
	}
	return nil
}

const blockColumns = `network, tx_id, log_index, from_address, to_address, amount, block, block_time`

var appendTransfer = `INSERT INTO devchain_transfers (` + blockColumns + `) VALUES (` + placeholders(1, 8) + `)`

func (r devchain) Append(_ context.Context, t recharge.Transfer) error {
	_, err := r.exec(appendTransfer, t.Network, t.TxID, int64(t.LogIndex), t.From, t.To, int64(t.Amount), t.Block,
		micros(t.BlockTime))
	if err != nil {
		return fmt.Errorf("append transfer %s: %w", t.TxID, err)
	}
	return nil
}

const blockTransfers = `SELECT ` + blockColumns + ` FROM devchain_transfers WHERE `

func (r devchain) Block(ctx context.Context, number int64) ([]recharge.Transfer, error) {
	return r.list(ctx, blockTransfers+`block = ?1`+inChainOrder, number)
}

func (r devchain) Transaction(ctx context.Context, txID string) ([]recharge.Transfer, error) {
	return r.list(ctx, blockTransfers+`tx_id = ?1`+inChainOrder, txID)
}

// touching says everything twice, so that both halves are found in an index.
const touching = blockTransfers + `(to_address = ?1 AND block >= ?2) OR (from_address = ?1 AND block >= ?2)` + inChainOrder

func (r devchain) Touching(ctx context.Context, address string, from int64) ([]recharge.Transfer, error) {
	return r.list(ctx, touching, address, from)
}

func (r devchain) list(ctx context.Context, query string, args ...any) ([]recharge.Transfer, error) {
	list, err := listed(ctx, r.tx, 0, scanBlockTransfer, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list transfers of the development chain: %w", err)
	}
	return list, nil
}

func scanBlockTransfer(row engine.Row) (t recharge.Transfer, err error) {
	var at int64
	err = row.Scan(&t.Network, &t.TxID, &t.LogIndex, &t.From, &t.To, &t.Amount, &t.Block, &at)
	t.BlockTime = fromMicros(at)
	return t, err
}
