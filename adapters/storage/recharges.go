package storage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// recharges keeps the addresses and orders of recharges. The transfers are in
// transfers.go.
type recharges struct{ *tx }

const nextIndex = `INSERT INTO recharge_keys (network, fingerprint, next) VALUES (?1, ?2, 1)
	ON CONFLICT (network, fingerprint) DO UPDATE SET next = recharge_keys.next + 1
	RETURNING next - 1`

func (r recharges) NextIndex(_ context.Context, network, fingerprint string) (index uint32, err error) {
	if err := r.returning(nextIndex, []any{network, fingerprint}, &index); err != nil {
		return 0, fmt.Errorf("take an index of key %s: %w", fingerprint, err)
	}
	return index, nil
}

// insertAddress leaves the transaction as it is when one of the three unique
// keys refuses the row.
var insertAddress = `INSERT INTO recharge_addresses (` + addressColumns + `)
	VALUES (` + placeholders(1, 9) + `) ON CONFLICT DO NOTHING`

func (r recharges) InsertAddress(_ context.Context, a recharge.Address) error {
	n, err := r.exec(insertAddress, addressValues(a)...)
	if err != nil {
		return fmt.Errorf("insert address %s: %w", a.Address, err)
	}
	if n == 0 {
		return ports.ErrDuplicate
	}
	return nil
}

func (r recharges) AddressOf(_ context.Context, network, fingerprint, agentID string) (recharge.Address, bool, error) {
	a, err := scanAddress(r.row(`SELECT `+addressColumns+` FROM recharge_addresses
		WHERE network = ?1 AND fingerprint = ?2 AND agent_id = ?3`+r.lock("recharge_addresses"), network, fingerprint, agentID))
	if errors.Is(err, sql.ErrNoRows) {
		return recharge.Address{}, false, nil
	}
	if err != nil {
		return recharge.Address{}, false, fmt.Errorf("read address of %s: %w", agentID, err)
	}
	return a, true, nil
}

// ownedAtOnce is how many addresses one query asks for: a block has hundreds.
const ownedAtOnce = 256

// owned is the query for that many; list is what in made for it.
func owned(list string) string {
	return `SELECT ` + addressColumns + ` FROM recharge_addresses WHERE network = ?1 AND address IN ` + list
}

func (r recharges) Owned(
	ctx context.Context, network string, addresses []string,
) (map[string]recharge.Address, error) {
	ours := map[string]recharge.Address{}
	for len(addresses) > 0 {
		n := min(len(addresses), ownedAtOnce)
		list, size := in(2, n)
		args := append(make([]any, 0, size+1), network)
		for i := range size {
			args = append(args, addresses[min(i, n-1)])
		}
		addresses = addresses[n:]
		query := owned(list)
		if r.locks() { // in one order, so that units do not wait for each other
			query += ` ORDER BY seq` + r.lock("recharge_addresses")
		}
		some, err := listed(ctx, r.tx, 0, scanAddress, query, args...)
		if err != nil {
			return nil, fmt.Errorf("look for owned addresses: %w", err)
		}
		for _, a := range some {
			ours[a.Address] = a
		}
	}
	return ours, nil
}

// waiting are the states of an open order. The queries repeat the words of the
// partial index, or it is not used.
const waiting = `status IN ('pending', 'confirming')`

const watched = `SELECT ` + addressColumns + ` FROM recharge_addresses WHERE network = ?1 AND address IN (
	SELECT address FROM recharge_orders WHERE network = ?1 AND ` + waiting + `
	UNION SELECT address FROM recharge_orders WHERE network = ?1 AND expires_at > ?2)
	ORDER BY read_through, address LIMIT ?3`

func (r recharges) Watched(
	ctx context.Context, network string, after time.Time, limit int,
) ([]recharge.Address, error) {
	return r.addresses(ctx, "watched", watched, network, micros(after), limit)
}

const leastAudited = `SELECT ` + addressColumns + ` FROM recharge_addresses WHERE network = ?1
	ORDER BY audited_at, address LIMIT ?2`

func (r recharges) Addresses(ctx context.Context, network string, limit int) ([]recharge.Address, error) {
	return r.addresses(ctx, "least audited", leastAudited, network, limit)
}

const addressesByAgent = `SELECT ` + addressColumns + ` FROM recharge_addresses WHERE network = ?1
	ORDER BY agent_id, seq LIMIT ?2 OFFSET ?3`

func (r recharges) AllAddresses(
	ctx context.Context, network string, page domain.Page,
) (domain.List[recharge.Address], error) {
	list := domain.List[recharge.Address]{Page: page}
	err := r.row(`SELECT COUNT(*) FROM recharge_addresses WHERE network = ?1`, network).Scan(&list.Total)
	if err != nil {
		return list, fmt.Errorf("count addresses: %w", err)
	}
	list.Items, err = r.addresses(ctx, "all", addressesByAgent, network, page.Size, page.Offset())
	return list, err
}

func (r recharges) addresses(ctx context.Context, which, query string, args ...any) ([]recharge.Address, error) {
	found, err := listed(ctx, r.tx, 0, scanAddress, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list addresses (%s): %w", which, err)
	}
	return found, nil
}

const putAddress = `UPDATE recharge_addresses SET audited_at = ?4, drift = ?5,
	read_through = CASE WHEN read_through < ?3 THEN ?3 ELSE read_through END
	WHERE network = ?1 AND address = ?2`

func (r recharges) PutAddress(_ context.Context, a recharge.Address) error {
	n, err := r.exec(putAddress, a.Network, a.Address, micros(a.ReadThrough), micros(a.AuditedAt), int64(a.Drift))
	if err == nil && n == 0 {
		err = errors.New("it is not ours")
	}
	if err != nil {
		return fmt.Errorf("write address %s: %w", a.Address, err)
	}
	return nil
}

var insertOrder = `INSERT INTO recharge_orders (` + orderColumns + `) VALUES (` + placeholders(1, 10) + `)`

func (r recharges) InsertOrder(_ context.Context, o recharge.Order) error {
	return r.later("insert order "+o.ID, insertOrder, orderValues(o)...)
}

const loadOrder = `SELECT ` + orderColumns + ` FROM recharge_orders WHERE id = ?1`

func (r recharges) Order(_ context.Context, agentID, id string) (recharge.Order, error) {
	return r.order(id, r.row(loadOrder+` AND agent_id = ?2`+r.lock("recharge_orders"), id, agentID))
}

func (r recharges) LoadOrder(_ context.Context, id string) (recharge.Order, error) {
	return r.order(id, r.row(loadOrder+r.lock("recharge_orders"), id))
}

func (r recharges) order(id string, row engine.Row) (recharge.Order, error) {
	o, err := scanOrder(row)
	if errors.Is(err, sql.ErrNoRows) {
		return recharge.Order{}, recharge.ErrNotFound
	}
	if err != nil {
		return recharge.Order{}, fmt.Errorf("read order %s: %w", id, err)
	}
	return o, nil
}

func (r recharges) PutOrder(_ context.Context, o recharge.Order) error {
	n, err := r.exec(`UPDATE recharge_orders SET status = ?2, received = ?3, paid_at = ?4 WHERE id = ?1`,
		o.ID, string(o.Status), int64(o.Received), micros(o.PaidAt))
	if err != nil {
		return fmt.Errorf("write order %s: %w", o.ID, err)
	}
	if n == 0 {
		return recharge.ErrNotFound
	}
	return nil
}

// ordersWhere are the conditions of a list of orders, from parameter 1 on.
func ordersWhere(agentID string, of recharge.Status) (where string, args []any) {
	add := func(column, value string) {
		if value != "" {
			args = append(args, value)
			where += ` AND ` + column + ` = ?` + strconv.Itoa(len(args))
		}
	}
	add("agent_id", agentID)
	add("status", string(of))
	return `1 = 1` + where, args
}

func countOrders(where string) string { return `SELECT COUNT(*) FROM recharge_orders WHERE ` + where }

// pageOfOrders walks the pages before within an index. Its last two parameters
// are the limit and the offset.
func pageOfOrders(where string, args int) string {
	return `SELECT ` + orderColumns + ` FROM recharge_orders WHERE seq IN (SELECT seq FROM recharge_orders WHERE ` +
		where + ` ORDER BY seq DESC LIMIT ?` + strconv.Itoa(args+1) + ` OFFSET ?` + strconv.Itoa(args+2) +
		`) ORDER BY seq DESC`
}

func (r recharges) Orders(
	ctx context.Context, agentID string, of recharge.Status, page domain.Page,
) (domain.List[recharge.Order], error) {
	list := domain.List[recharge.Order]{Page: page}
	where, args := ordersWhere(agentID, of)
	err := r.row(countOrders(where), args...).Scan(&list.Total)
	if err == nil && list.Total > page.Offset() {
		list.Items, err = listed(ctx, r.tx, page.Size, scanOrder, pageOfOrders(where, len(args)),
			append(args, page.Size, page.Offset())...)
	}
	if err != nil {
		return list, fmt.Errorf("list orders of %s: %w", agentID, err)
	}
	return list, nil
}

const openOrders = `SELECT COUNT(*) FROM recharge_orders WHERE agent_id = ?1 AND ` + waiting

func (r recharges) OpenOrders(_ context.Context, agentID string) (n int, err error) {
	if err := r.row(openOrders, agentID).Scan(&n); err != nil {
		return 0, fmt.Errorf("count open orders of %s: %w", agentID, err)
	}
	return n, nil
}

// What is payable are two ranges of one index. As one query the database would
// read every order that ever expired.
const (
	payableOpen = `SELECT ` + orderColumns + ` FROM recharge_orders
	WHERE network = ?1 AND agent_id = ?2 AND ` + waiting
	payableLate = `SELECT ` + orderColumns + ` FROM recharge_orders
	WHERE network = ?1 AND agent_id = ?2 AND status = 'expired' AND expires_at >= ?3`
)

func (r recharges) Payable(
	ctx context.Context, network, agentID string, closed time.Time,
) ([]recharge.Order, error) {
	lock := r.lock("recharge_orders")
	orders, err := listed(ctx, r.tx, 0, scanOrder, payableOpen+lock, network, agentID)
	late, lateErr := listed(ctx, r.tx, 0, scanOrder, payableLate+lock, network, agentID, micros(closed))
	if err := errors.Join(err, lateErr); err != nil {
		return nil, fmt.Errorf("list payable orders of %s: %w", agentID, err)
	}
	orders = append(orders, late...)
	slices.SortFunc(orders, func(a, b recharge.Order) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return orders, nil
}

const overdue = `SELECT agent_id FROM recharge_orders WHERE network = ?1 AND expires_at < ?2 AND ` + waiting + `
	GROUP BY agent_id ORDER BY MIN(expires_at), agent_id LIMIT ?3`

func (r recharges) Overdue(ctx context.Context, network string, before time.Time, limit int) ([]string, error) {
	agents, err := r.texts(ctx, overdue, network, micros(before), limit)
	if err != nil {
		return nil, fmt.Errorf("list agents with overdue orders: %w", err)
	}
	return agents, nil
}
