package procurement

import (
	"context"
	"time"

	"agentproxy/adapters/storage/work"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// claims keeps which orders have which lines of lists.
type claims struct{ *work.Unit }

// Claims returns the claimed lines in a unit.
func Claims(u *work.Unit) ports.Claims { return claims{u} }

// claimRow is a row of list_claims.
type claimRow struct {
	Provider  string
	Line      string
	Seat      int
	OrderID   string
	SKU       string
	Country   string
	City      string
	ExitIP    string
	EndsAt    time.Time `gorm:"serializer:micros"`
	Renewal   string
	ClaimedAt time.Time `gorm:"serializer:micros"`
}

func (claimRow) TableName() string { return "list_claims" }

func (r claims) All(ctx context.Context, provider string) ([]procurement.Claim, error) {
	// The caller claims a line that has no row, so the lock is on the list.
	r.Serialize("claims", provider)
	return r.find(ctx, "provider = ?", provider)
}

func (r claims) Of(ctx context.Context, provider, orderID string) ([]procurement.Claim, error) {
	return r.find(ctx, "provider = ? AND order_id = ?", provider, orderID)
}

func (r claims) find(ctx context.Context, where string, args ...any) ([]procurement.Claim, error) {
	var rows []claimRow
	if err := r.ORM(ctx).Where(where, args...).Order("line, seat").Find(&rows).Error; err != nil {
		return nil, work.Wrap("list claims", err)
	}
	list := make([]procurement.Claim, len(rows))
	for i, row := range rows {
		list[i] = procurement.Claim{Provider: row.Provider, Line: row.Line, Seat: row.Seat, OrderID: row.OrderID,
			SKU: row.SKU, Location: session.Location{Country: row.Country, City: row.City},
			Exit: row.ExitIP, EndsAt: row.EndsAt, Renewal: row.Renewal, ClaimedAt: row.ClaimedAt}
	}
	return list, nil
}

// Add inserts all of them by one statement, so a claimed one leaves none behind.
func (r claims) Add(ctx context.Context, list []procurement.Claim) error {
	if len(list) == 0 {
		return nil
	}
	rows := make([]claimRow, len(list))
	for i, c := range list {
		rows[i] = claimRow{Provider: c.Provider, Line: c.Line, Seat: c.Seat, OrderID: c.OrderID, SKU: c.SKU,
			Country: c.Location.Country, City: c.Location.City, ExitIP: c.Exit,
			EndsAt: c.EndsAt, Renewal: c.Renewal, ClaimedAt: c.ClaimedAt}
	}
	err := r.Attempt(func() error { return r.Write(ctx).Create(&rows).Error })
	if err != nil && r.IsDuplicate(err) {
		return ports.ErrDuplicate
	}
	return work.Wrap("claim lines", err)
}

func (r claims) Drop(ctx context.Context, provider, orderID string) error {
	err := r.Write(ctx).Where("provider = ? AND order_id = ?", provider, orderID).Delete(&claimRow{}).Error
	return work.Wrap("drop claims of "+orderID, err)
}
