package procurement

import (
	"context"
	"fmt"

	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// addresses keeps which static addresses are taken.
type addresses struct{ *work.Unit }

// Addresses returns the static addresses that are taken in a unit.
func Addresses(u *work.Unit) ports.Addresses { return addresses{u} }

// addressRow is a row of static_addresses.
type addressRow struct {
	Provider  string
	IP        string
	SessionID string
}

func (addressRow) TableName() string { return "static_addresses" }

func (r addresses) Taken(ctx context.Context, provider string) (map[string]bool, error) {
	// The caller takes one that is not in the list, so the lock is on the list.
	r.Serialize("addresses", provider)
	var ips []string
	err := r.ORM(ctx).Model(&addressRow{}).Where("provider = ?", provider).Pluck("ip", &ips).Error
	if err != nil {
		return nil, fmt.Errorf("list taken addresses: %w", err)
	}
	taken := make(map[string]bool, len(ips))
	for _, ip := range ips {
		taken[ip] = true
	}
	return taken, nil
}

// Take inserts all of them by one statement, so a taken one leaves none behind.
func (r addresses) Take(ctx context.Context, provider, sessionID string, ips []string) error {
	if len(ips) == 0 {
		return nil
	}
	rows := make([]addressRow, len(ips))
	for i, ip := range ips {
		rows[i] = addressRow{Provider: provider, IP: ip, SessionID: sessionID}
	}
	err := r.Attempt(func() error { return r.Write(ctx).Create(&rows).Error })
	if err != nil && r.IsDuplicate(err) {
		return ports.ErrDuplicate
	}
	if err != nil {
		return fmt.Errorf("take addresses for %s: %w", sessionID, err)
	}
	return nil
}

func (r addresses) Sold(_ context.Context, ip string) (bool, error) {
	var n int64
	err := r.Row(`SELECT COUNT(*) FROM static_addresses WHERE ip = ?1`, ip).Scan(&n)
	return n > 0, work.Wrap("look for address "+ip, err)
}

func (r addresses) Owners(ctx context.Context, provider string) (map[string]string, error) {
	var rows []addressRow
	if err := r.ORM(ctx).Where("provider = ?", provider).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list owners of addresses: %w", err)
	}
	owners := make(map[string]string, len(rows))
	for _, row := range rows {
		owners[row.IP] = row.SessionID
	}
	return owners, nil
}

func (r addresses) Free(ctx context.Context, sessionID string) error {
	if err := r.Write(ctx).Where("session_id = ?", sessionID).Delete(&addressRow{}).Error; err != nil {
		return fmt.Errorf("free addresses of %s: %w", sessionID, err)
	}
	return nil
}
