package accounts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/ports"
)

// referrers keeps referring agents.
type referrers struct{ *work.Unit }

// Referrers returns the referring agents in a unit.
func Referrers(u *work.Unit) ports.Referrers { return referrers{u} }

// referrerRow is a row of referrers.
type referrerRow struct {
	ID        string
	Name      string
	Code      string
	IsDefault bool
	Disabled  bool
	CreatedAt int64 `gorm:"autoCreateTime:false"`
	UpdatedAt int64 `gorm:"autoUpdateTime:false"`
}

func (referrerRow) TableName() string { return "referrers" }

func toReferrerRow(r account.Referrer, now time.Time) referrerRow {
	return referrerRow{ID: r.ID, Name: r.Name, Code: r.Code, IsDefault: r.Default, Disabled: r.Disabled,
		CreatedAt: column.Micros(now), UpdatedAt: column.Micros(now)}
}

func fromReferrerRow(r referrerRow) account.Referrer {
	return account.Referrer{ID: r.ID, Name: r.Name, Code: r.Code, Default: r.IsDefault, Disabled: r.Disabled}
}

// errReferrerExists refuses a second referrer with the id or the code of one.
var errReferrerExists = &domain.Error{Kind: domain.Conflict, Code: "REFERRER_EXISTS",
	Message: "a referrer with this code exists"}

func (r referrers) Insert(ctx context.Context, f account.Referrer, now time.Time) error {
	row := toReferrerRow(f, now)
	err := r.Attempt(func() error { return r.Write(ctx).Create(&row).Error })
	if err != nil && r.IsDuplicate(err) {
		return errReferrerExists
	}
	if err != nil {
		return fmt.Errorf("insert referrer %s: %w", f.ID, err)
	}
	return nil
}

func (r referrers) ByCode(ctx context.Context, code string) (account.Referrer, error) {
	return r.one(ctx, "code = ?", code)
}

func (r referrers) Default(ctx context.Context) (account.Referrer, error) {
	return r.one(ctx, "is_default = 1")
}

func (r referrers) one(ctx context.Context, where string, args ...any) (account.Referrer, error) {
	var row referrerRow
	err := r.Shared(ctx).Where(where, args...).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return account.Referrer{}, account.ErrReferralCode
	}
	if err != nil {
		return account.Referrer{}, fmt.Errorf("read referrer: %w", err)
	}
	return fromReferrerRow(row), nil
}

func (r referrers) Disable(ctx context.Context, code string, now time.Time) error {
	done := r.Write(ctx).Model(&referrerRow{}).Where("code = ?", code).
		Updates(map[string]any{"disabled": true, "updated_at": column.Micros(now)})
	if done.Error != nil {
		return fmt.Errorf("disable referrer: %w", done.Error)
	}
	if done.RowsAffected == 0 {
		return account.ErrReferralCode
	}
	return nil
}

func (r referrers) List(ctx context.Context) ([]account.Referrer, error) {
	var rows []referrerRow
	if err := r.Shared(ctx).Order("created_at, id").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list referrers: %w", err)
	}
	list := make([]account.Referrer, len(rows))
	for i, row := range rows {
		list[i] = fromReferrerRow(row)
	}
	return list, nil
}
