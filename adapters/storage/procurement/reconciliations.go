package procurement

import (
	"context"
	"time"

	"gorm.io/gorm/clause"

	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// reconciliations keeps one row a provider.
type reconciliations struct{ *work.Unit }

// Reconciliations returns the comparisons with providers in a unit.
func Reconciliations(u *work.Unit) ports.Reconciliations { return reconciliations{u} }

// reconciliationRow is a row of reconciliations.
type reconciliationRow struct {
	Provider string    `gorm:"primaryKey"`
	At       time.Time `gorm:"serializer:micros"`
	Listed   int
	Orphans  int
}

func (reconciliationRow) TableName() string { return "reconciliations" }

func (r reconciliations) Put(ctx context.Context, c ports.Reconciliation) error {
	row := reconciliationRow(c)
	_, err := r.Written(r.Write(ctx).Clauses(clause.OnConflict{UpdateAll: true}).Create(&row))
	return work.Wrap("store the reconciliation of "+c.Provider, err)
}

func (r reconciliations) All(ctx context.Context) (map[string]ports.Reconciliation, error) {
	rows, err := work.All(r.ORM(ctx),
		func(row reconciliationRow) ports.Reconciliation { return ports.Reconciliation(row) })
	byProvider := map[string]ports.Reconciliation{}
	for _, c := range rows {
		byProvider[c.Provider] = c
	}
	return byProvider, work.Wrap("read reconciliations", err)
}
