package evidence

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/audit"
	"agentproxy/ports"
)

// auditTrail keeps what operators did.
type auditTrail struct{ *work.Unit }

// AuditTrail returns the actions of operators in a unit.
func AuditTrail(u *work.Unit) ports.AuditTrail { return auditTrail{u} }

// actionRow is a row of audit_actions.
type actionRow struct {
	ID      string
	At      time.Time `gorm:"serializer:micros"`
	By      string    `gorm:"column:who"`
	Via     audit.Via
	Name    string
	Subject string
	Reason  string
	Ref     string
	Details string
}

func (actionRow) TableName() string { return "audit_actions" }

// purgedAtOnce is how many actions that are too old go with a new one, so that the table shrinks
// although only new actions shrink it.
const purgedAtOnce = 10

// purgeActions looks at the oldest rows alone.
const purgeActions = `DELETE FROM audit_actions WHERE at < ?1
	AND seq IN (SELECT seq FROM audit_actions ORDER BY seq LIMIT ?2)`

// sameReference is the conflict of an action with one that has its name and reference.
var sameReference = clause.OnConflict{
	Columns:     []clause.Column{{Name: "name"}, {Name: "ref"}},
	TargetWhere: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "ref <> ''"}}},
	DoNothing:   true,
}

func (r auditTrail) Append(ctx context.Context, a audit.Action) error {
	row := actionRow(a)
	_, err := r.Written(r.Write(ctx).Clauses(sameReference).Create(&row))
	if err == nil {
		_, err = r.Exec(purgeActions, column.Micros(a.At.Add(-audit.Keep)), purgedAtOnce)
	}
	return work.Wrap("keep an action of the operator", err)
}

func (r auditTrail) List(
	ctx context.Context, f audit.Filter, page domain.Page,
) (domain.List[audit.Action], error) {
	list := domain.List[audit.Action]{Page: page}
	var total int64
	err := actionsOf(r.ORM(ctx).Model(&actionRow{}), f).Count(&total).Error
	list.Total = int(total)
	if err == nil && list.Total > page.Offset() {
		rows := actionsOf(r.ORM(ctx), f).Order("seq DESC").Limit(page.Size).Offset(page.Offset())
		list.Items, err = work.All(rows, func(row actionRow) audit.Action { return audit.Action(row) })
	}
	return list, work.Wrap("list actions of the operator", err)
}

// actionsOf narrows a query to the actions of a filter.
func actionsOf(db *gorm.DB, f audit.Filter) *gorm.DB {
	// A struct of conditions leaves its zero fields out.
	db = db.Where(&actionRow{By: f.By, Name: f.Name, Subject: f.Subject})
	if !f.From.IsZero() {
		db = db.Where("at >= ?", column.Micros(f.From))
	}
	if !f.To.IsZero() {
		db = db.Where("at < ?", column.Micros(f.To))
	}
	return db
}
