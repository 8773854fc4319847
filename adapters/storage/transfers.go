package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

func (r recharges) Transfer(_ context.Context, k recharge.Key) (recharge.Transfer, bool, error) {
	t, err := scanTransfer(r.row(`SELECT `+transferColumns+` FROM recharge_transfers
		WHERE network = ?1 AND tx_id = ?2 AND log_index = ?3`+r.lock("recharge_transfers"), k.Network, k.TxID, k.LogIndex))
	if errors.Is(err, sql.ErrNoRows) {
		return recharge.Transfer{}, false, nil
	}
	if err != nil {
		return recharge.Transfer{}, false, fmt.Errorf("read transfer %s: %w", k.TxID, err)
	}
	return t, true, nil
}

// putTransfer changes whatever the chain or a settlement may change, but not
// when the transfer was first seen, and nothing of a final one.
var putTransfer = `INSERT INTO recharge_transfers (` + transferColumns + `) VALUES (` + placeholders(1, 13) + `)
	ON CONFLICT (network, tx_id, log_index) DO UPDATE SET
	from_address = excluded.from_address, to_address = excluded.to_address, amount = excluded.amount,
	block = excluded.block, block_time = excluded.block_time, state = excluded.state, note = excluded.note,
	agent_id = excluded.agent_id, order_id = excluded.order_id
	WHERE recharge_transfers.state <> 'final'`

func (r recharges) PutTransfer(_ context.Context, t recharge.Transfer) (bool, error) {
	n, err := r.exec(putTransfer, transferValues(t)...)
	if err != nil {
		return false, fmt.Errorf("write transfer %s: %w", t.TxID, err)
	}
	return n > 0, nil
}

// inChainOrder is how recharge.Compare sorts.
const inChainOrder = ` ORDER BY block, log_index, tx_id`

const seenOf = `SELECT ` + transferColumns + ` FROM recharge_transfers
	WHERE network = ?1 AND agent_id = ?2 AND state = 'seen'` + inChainOrder

func (r recharges) SeenOf(ctx context.Context, network, agentID string) ([]recharge.Transfer, error) {
	return r.transfers(ctx, "seen of "+agentID, seenOf+r.lock("recharge_transfers"), network, agentID)
}

const seenUpTo = `SELECT ` + transferColumns + ` FROM recharge_transfers
	WHERE network = ?1 AND block <= ?2 AND state = 'seen'` + inChainOrder + ` LIMIT ?3`

func (r recharges) SeenUpTo(
	ctx context.Context, network string, block int64, limit int,
) ([]recharge.Transfer, error) {
	return r.transfers(ctx, "seen", seenUpTo, network, block, limit)
}

// ofOrder repeats the words of the partial index, or it is not used.
const ofOrder = `SELECT ` + transferColumns + ` FROM recharge_transfers
	WHERE order_id = ?1 AND order_id <> '' AND state IN ('seen', 'final')` + inChainOrder

func (r recharges) OfOrder(ctx context.Context, orderID string) ([]recharge.Transfer, error) {
	return r.transfers(ctx, "of "+orderID, ofOrder, orderID)
}

const known = `SELECT
	(SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM recharge_transfers
		WHERE network = ?1 AND to_address = ?2 AND state = 'final') -
	(SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM recharge_transfers
		WHERE network = ?1 AND from_address = ?2 AND state = 'final')`

func (r recharges) Known(_ context.Context, network, address string) (sum domain.Money, err error) {
	if err := r.row(known, network, address).Scan(&sum); err != nil {
		return 0, fmt.Errorf("sum transfers of %s: %w", address, err)
	}
	return sum, nil
}

// finalOf says everything twice, so that both halves are found in an index.
const finalOf = `SELECT ` + transferColumns + ` FROM recharge_transfers WHERE
	(network = ?1 AND to_address = ?2 AND state = 'final' AND block_time >= ?3)
	OR (network = ?1 AND from_address = ?2 AND state = 'final' AND block_time >= ?3)` + inChainOrder

func (r recharges) FinalOf(
	ctx context.Context, network, address string, since time.Time,
) ([]recharge.Transfer, error) {
	return r.transfers(ctx, "final of "+address, finalOf, network, address, micros(since))
}

func (r recharges) transfers(ctx context.Context, which, query string, args ...any) ([]recharge.Transfer, error) {
	found, err := listed(ctx, r.tx, 0, scanTransfer, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list transfers (%s): %w", which, err)
	}
	return found, nil
}

func (r recharges) ScanCursor(_ context.Context, network string) (m recharge.ScanCursor, known bool, err error) {
	// Before the first there is no row to lock.
	r.serialize("mark", network)
	var final, read int64
	err = r.row(`SELECT final_number, final_time, latest, read_at FROM recharge_marks WHERE network = ?1`+
		r.lock("recharge_marks"), network).Scan(&m.Final.Number, &final, &m.Latest, &read)
	if errors.Is(err, sql.ErrNoRows) {
		return recharge.ScanCursor{}, false, nil
	}
	if err != nil {
		return recharge.ScanCursor{}, false, fmt.Errorf("read mark of %s: %w", network, err)
	}
	m.Final.Time, m.ReadAt = fromMicros(final), fromMicros(read)
	return m, true, nil
}

// putMark moves both parts of the final head together.
const putMark = `INSERT INTO recharge_marks (network, final_number, final_time, latest, read_at)
	VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (network) DO UPDATE SET
	final_number = CASE WHEN ?6 = 1 OR excluded.final_number >= recharge_marks.final_number
		THEN excluded.final_number ELSE recharge_marks.final_number END,
	final_time = CASE WHEN ?6 = 1 OR excluded.final_number >= recharge_marks.final_number
		THEN excluded.final_time ELSE recharge_marks.final_time END,
	latest = excluded.latest, read_at = excluded.read_at`

func (r recharges) PutScanCursor(_ context.Context, network string, m recharge.ScanCursor, rescan bool) error {
	return r.later("write mark of "+network, putMark,
		network, m.Final.Number, micros(m.Final.Time), m.Latest, micros(m.ReadAt), flag(rescan))
}
