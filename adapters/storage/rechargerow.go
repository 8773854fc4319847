package storage

import (
	"context"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain/recharge"
)

// listed runs a query and returns what scan makes of its rows.
func listed[T any](
	ctx context.Context, t *tx, room int, scan func(engine.Row) (T, error), query string, args ...any,
) ([]T, error) {
	items := make([]T, 0, room)
	err := t.rows(ctx, query, args, func(rows engine.Row) error {
		item, err := scan(rows)
		items = append(items, item)
		return err
	})
	return items, err
}

const addressColumns = `network, fingerprint, idx, agent_id, address, created_at, read_through, audited_at, drift`

func addressValues(a recharge.Address) []any {
	return []any{a.Network, a.Fingerprint, int64(a.Index), a.AgentID, a.Address, micros(a.CreatedAt),
		micros(a.ReadThrough), micros(a.AuditedAt), int64(a.Drift)}
}

func scanAddress(row engine.Row) (a recharge.Address, err error) {
	var created, read, audited int64
	err = row.Scan(&a.Network, &a.Fingerprint, &a.Index, &a.AgentID, &a.Address, &created, &read, &audited, &a.Drift)
	a.CreatedAt, a.ReadThrough, a.AuditedAt = fromMicros(created), fromMicros(read), fromMicros(audited)
	return a, err
}

const orderColumns = `id, agent_id, network, address, amount, received, status, created_at, expires_at, paid_at`

func orderValues(o recharge.Order) []any {
	return []any{o.ID, o.AgentID, o.Network, o.Address, int64(o.Amount), int64(o.Received), string(o.Status),
		micros(o.CreatedAt), micros(o.ExpiresAt), micros(o.PaidAt)}
}

func scanOrder(row engine.Row) (o recharge.Order, err error) {
	var created, expires, paid int64
	err = row.Scan(&o.ID, &o.AgentID, &o.Network, &o.Address, &o.Amount, &o.Received, &o.Status,
		&created, &expires, &paid)
	o.CreatedAt, o.ExpiresAt, o.PaidAt = fromMicros(created), fromMicros(expires), fromMicros(paid)
	return o, err
}

const transferColumns = `network, tx_id, log_index, from_address, to_address, amount, block, block_time, state, note,
	agent_id, order_id, first_seen`

func transferValues(t recharge.Transfer) []any {
	return []any{t.Network, t.TxID, int64(t.LogIndex), t.From, t.To, int64(t.Amount), t.Block, micros(t.BlockTime),
		string(t.State), t.Note, t.AgentID, t.OrderID, micros(t.FirstSeen)}
}

func scanTransfer(row engine.Row) (t recharge.Transfer, err error) {
	var at, seen int64
	err = row.Scan(&t.Network, &t.TxID, &t.LogIndex, &t.From, &t.To, &t.Amount, &t.Block, &at, &t.State, &t.Note,
		&t.AgentID, &t.OrderID, &seen)
	t.BlockTime, t.FirstSeen = fromMicros(at), fromMicros(seen)
	return t, err
}
