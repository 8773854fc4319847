// Package payments keeps what agents pay: their addresses, orders and transfers, how far the chain was
// read, and the development chain.
package payments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

type payAddresses struct{ *work.Unit }

// PayAddresses returns the addresses of recharges in a unit.
func PayAddresses(u *work.Unit) ports.PayAddresses { return payAddresses{u} }

// rechargeAddressRow is a row of recharge_addresses.
type rechargeAddressRow struct {
	Network     string
	Fingerprint string
	Index       uint32 `gorm:"column:idx"`
	AgentID     string
	Address     string
	CreatedAt   time.Time `gorm:"serializer:micros;autoCreateTime:false"`
	ReadThrough time.Time `gorm:"serializer:micros"`
	AuditedAt   time.Time `gorm:"serializer:micros"`
	Drift       domain.Money
}

func (rechargeAddressRow) TableName() string { return "recharge_addresses" }

func fromRechargeAddressRow(r rechargeAddressRow) recharge.Address { return recharge.Address(r) }

// nextIndex counts the indexes of a key for all of its networks together: an address is one key's on all of them.
const nextIndex = `INSERT INTO recharge_keys (network, fingerprint, next)
	VALUES (?1, ?2, COALESCE((SELECT MAX(next) FROM recharge_keys WHERE fingerprint = ?2), ?3) + 1)
	ON CONFLICT (network, fingerprint) DO UPDATE SET next = CASE WHEN recharge_keys.next < excluded.next
		THEN excluded.next ELSE recharge_keys.next + 1 END
	RETURNING next - 1`

func (r payAddresses) NextIndex(_ context.Context, network, fingerprint string) (index uint32, err error) {
	if err := r.Returning(nextIndex, []any{network, fingerprint, recharge.FirstIndex}, &index); err != nil {
		return 0, fmt.Errorf("take an index of key %s: %w", fingerprint, err)
	}
	return index, nil
}

const unusedIndex = `SELECT COALESCE(MAX(next), ?3), COALESCE(MAX(CASE network WHEN ?1 THEN kept END), 0)
	FROM recharge_keys WHERE fingerprint = ?2`

func (r payAddresses) Unused(_ context.Context, network, fingerprint string) (next uint32, kept bool, err error) {
	var flag int64
	if err := r.Row(unusedIndex, network, fingerprint, recharge.FirstIndex).Scan(&next, &flag); err != nil {
		return 0, false, fmt.Errorf("read the next index of key %s: %w", fingerprint, err)
	}
	return next, flag == 1, nil
}

const skipTo = `INSERT INTO recharge_keys (network, fingerprint, next, kept) VALUES (?1, ?2, ?3, ?4)
	ON CONFLICT (network, fingerprint) DO UPDATE SET kept = excluded.kept, next = CASE
		WHEN recharge_keys.next < excluded.next THEN excluded.next ELSE recharge_keys.next END`

func (r payAddresses) SkipTo(_ context.Context, network, fingerprint string, next uint32, kept bool) error {
	return r.Later("skip indexes of key "+fingerprint, skipTo, network, fingerprint, next, column.Flag(kept))
}

// InsertAddress leaves the transaction as it is when one of the three unique indexes refuses the row.
func (r payAddresses) InsertAddress(ctx context.Context, a recharge.Address) error {
	row := rechargeAddressRow(a)
	n, err := r.Written(r.Write(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&row))
	if err != nil {
		return fmt.Errorf("insert address %s: %w", a.Address, err)
	}
	if n == 0 {
		return ports.ErrDuplicate
	}
	return nil
}

func (r payAddresses) AddressOf(
	ctx context.Context, network, fingerprint, agentID string,
) (recharge.Address, bool, error) {
	var row rechargeAddressRow
	found, err := work.One(r.Locked(ctx).Where("network = ? AND fingerprint = ? AND agent_id = ?",
		network, fingerprint, agentID), &row)
	if err != nil {
		return recharge.Address{}, false, fmt.Errorf("read address of %s: %w", agentID, err)
	}
	return recharge.Address(row), found, nil
}

// ownedAtOnce is how many addresses one query looks up. A block has hundreds.
const ownedAtOnce = 256

func (r payAddresses) Owned(
	ctx context.Context, network string, addresses []string,
) (map[string]recharge.Address, error) {
	owned := map[string]recharge.Address{}
	for len(addresses) > 0 {
		part := addresses[:min(len(addresses), ownedAtOnce)]
		addresses = addresses[len(part):]
		query := r.Locked(ctx).Where("network = ? AND address IN ?", network, work.SomeSizes(part))
		if r.Locks() { // in one order, so that units do not deadlock
			query = query.Order("seq")
		}
		some, err := work.All(query, fromRechargeAddressRow)
		if err != nil {
			return nil, fmt.Errorf("look up owned addresses: %w", err)
		}
		for _, a := range some {
			owned[a.Address] = a
		}
	}
	return owned, nil
}

func (r payAddresses) Addresses(ctx context.Context, network string, limit int) ([]recharge.Address, error) {
	return r.addresses("least audited",
		r.ORM(ctx).Where("network = ?", network).Order("audited_at, address").Limit(limit))
}

func (r payAddresses) CountAddresses(ctx context.Context, network string) (int, error) {
	var n int64
	err := r.ORM(ctx).Model(&rechargeAddressRow{}).Where("network = ?", network).Count(&n).Error
	return int(n), work.Wrap("count addresses", err)
}

func (r payAddresses) AllAddresses(ctx context.Context, network string) ([]recharge.Address, error) {
	return r.addresses("all", r.ORM(ctx).Where("network = ?", network).Order("agent_id, seq"))
}

func (r payAddresses) AwaitingAddresses(
	ctx context.Context, network string, since time.Time, limit int,
) ([]recharge.Address, error) {
	return r.some("awaiting", r.ORM(ctx).Where(`network = ? AND address IN (SELECT address FROM (
		SELECT address FROM recharge_orders WHERE network = ? AND expires_at >= ? GROUP BY address
		ORDER BY MAX(expires_at) DESC, address LIMIT ?) AS newest
		UNION SELECT address FROM recharge_orders WHERE network = ? AND `+isOpen+`)`,
		network, network, column.Micros(since), limit, network))
}

func (r payAddresses) PaidAddresses(ctx context.Context, network string) ([]recharge.Address, error) {
	return r.some("paid", r.ORM(ctx).Where(`network = ? AND address IN (SELECT to_address FROM recharge_transfers
		WHERE network = ?)`, network, network))
}

// some sorts here: asked for the order, the database would walk all addresses in it.
func (r payAddresses) some(which string, query *gorm.DB) ([]recharge.Address, error) {
	list, err := r.addresses(which, query)
	slices.SortFunc(list, func(a, b recharge.Address) int {
		return cmp.Or(strings.Compare(a.AgentID, b.AgentID), strings.Compare(a.Address, b.Address))
	})
	return list, err
}

func (r payAddresses) addresses(which string, query *gorm.DB) ([]recharge.Address, error) {
	found, err := work.All(query, fromRechargeAddressRow)
	if err != nil {
		return nil, fmt.Errorf("list addresses (%s): %w", which, err)
	}
	return found, nil
}

func (r payAddresses) PutAddress(ctx context.Context, a recharge.Address) error {
	n, err := r.Written(r.Write(ctx).Model(&rechargeAddressRow{}).
		Where("network = ? AND address = ?", a.Network, a.Address).
		Updates(map[string]any{"audited_at": column.Micros(a.AuditedAt), "drift": int64(a.Drift),
			"read_through": gorm.Expr("CASE WHEN read_through < ? THEN ? ELSE read_through END",
				column.Micros(a.ReadThrough), column.Micros(a.ReadThrough))}))
	if err == nil && n == 0 {
		err = errors.New("it belongs to no agent")
	}
	if err != nil {
		return fmt.Errorf("write address %s: %w", a.Address, err)
	}
	return nil
}
