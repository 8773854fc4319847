package procurement

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"gorm.io/gorm/clause"

	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/replacement"
	"agentproxy/ports"
)

// replacements keeps the addresses that agents gave back.
type replacements struct{ *work.Unit }

// Replacements returns the addresses that agents gave back, in a unit.
func Replacements(u *work.Unit) ports.Replacements { return replacements{u} }

// replacementRow is a row of replacements.
type replacementRow struct {
	ID        string
	AgentID   string
	SessionID string
	Provider  string
	Country   string
	Idx       int
	OldIP     string
	NewIP     string
	Fault     procurement.Fault
	Ground    replacement.Ground
	Status    replacement.Status
	OrderID   string
	Fee       domain.Money
	Refund    domain.Money
	Kept      domain.Money
	At        time.Time `gorm:"serializer:micros"`
	DecidedAt time.Time `gorm:"serializer:micros"`
	EndsAt    time.Time `gorm:"serializer:micros"`
}

func (replacementRow) TableName() string { return "replacements" }

// byID lets an insertion take the place of the row with its id.
var byID = clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, UpdateAll: true}

func (r replacements) Put(ctx context.Context, of replacement.Replacement) error {
	row := replacementRow{ID: of.ID, AgentID: of.AgentID, SessionID: of.SessionID, Provider: of.Provider,
		Country: of.Country, Idx: of.Index, OldIP: of.Old.String(), Fault: of.Fault, Ground: of.Ground, Status: of.Status,
		OrderID: of.OrderID, Fee: of.Fee, Refund: of.Refund, Kept: of.Kept, At: of.At, DecidedAt: of.DecidedAt,
		EndsAt: of.EndsAt}
	if of.New.IsValid() {
		row.NewIP = of.New.String()
	}
	return work.Wrap("store a replacement", r.Write(ctx).Clauses(byID).Create(&row).Error)
}

func (r replacements) find(ctx context.Context, where string, args ...any) ([]replacement.Replacement, error) {
	var rows []replacementRow
	if err := r.ORM(ctx).Where(where, args...).Order("at, id").Find(&rows).Error; err != nil {
		return nil, work.Wrap("list replacements", err)
	}
	list := make([]replacement.Replacement, len(rows))
	for i, row := range rows {
		list[i] = replacement.Replacement{ID: row.ID, AgentID: row.AgentID, SessionID: row.SessionID,
			Provider: row.Provider, Country: row.Country, Index: row.Idx, Fault: row.Fault, Ground: row.Ground,
			Status: row.Status, OrderID: row.OrderID, Fee: row.Fee, Refund: row.Refund, Kept: row.Kept, At: row.At,
			DecidedAt: row.DecidedAt, EndsAt: row.EndsAt}
		var err error
		if list[i].Old, err = netip.ParseAddr(row.OldIP); err == nil && row.NewIP != "" {
			list[i].New, err = netip.ParseAddr(row.NewIP)
		}
		if err != nil {
			return nil, fmt.Errorf("addresses of %s: %w", row.ID, err)
		}
	}
	return list, nil
}

func (r replacements) Of(ctx context.Context, sessionID string) ([]replacement.Replacement, error) {
	return r.find(ctx, "session_id = ?", sessionID)
}

func (r replacements) OfOrder(ctx context.Context, orderID string) (of replacement.Replacement, found bool, err error) {
	list, err := r.find(ctx, "order_id = ? AND order_id <> ''", orderID)
	if err != nil || len(list) == 0 {
		return of, false, err
	}
	return list[0], true, nil
}

func (r replacements) GivenBack(ctx context.Context, agentID string, since time.Time) (ips []string, err error) {
	err = r.ORM(ctx).Model(&replacementRow{}).Where("agent_id = ? AND at >= ? AND status IN ?", agentID,
		since.UnixMicro(), []replacement.Status{replacement.Done, replacement.Ended}).Pluck("old_ip", &ips).Error
	return ips, work.Wrap("list addresses that were given back", err)
}

func (r replacements) Counts(ctx context.Context) (list []replacement.Count, err error) {
	var rows []struct {
		Provider, Country string
		Replaced, Ended   int
		Fees, Refunds     domain.Money
	}
	err = r.ORM(ctx).Model(&replacementRow{}).Select(`provider, country,
		SUM(CASE WHEN status = 'done' THEN 1 ELSE 0 END) AS replaced,
		SUM(CASE WHEN status = 'ended' THEN 1 ELSE 0 END) AS ended,
		CAST(SUM(CASE WHEN status = 'done' THEN fee ELSE 0 END) AS BIGINT) AS fees, CAST(SUM(refund) AS BIGINT) AS refunds`).
		Where("status IN ?", []replacement.Status{replacement.Done, replacement.Ended}).Group("provider, country").
		Order("provider, country").Scan(&rows).Error
	for _, row := range rows {
		list = append(list, replacement.Count{Source: row.Provider, Country: row.Country, Replaced: row.Replaced,
			Ended: row.Ended, Fees: row.Fees, Refunds: row.Refunds})
	}
	return list, work.Wrap("count replacements", err)
}
