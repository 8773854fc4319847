package evidence

import (
	"context"
	"net/netip"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/exitlog"
)

// holdRow is a row of exit_holds.
type holdRow struct {
	ID        string
	From      time.Time `gorm:"column:from_at;serializer:micros"`
	To        time.Time `gorm:"column:to_at;serializer:micros"`
	Operator  string
	Reason    string
	CreatedAt time.Time `gorm:"serializer:micros;autoCreateTime:false"`
	EndedAt   time.Time `gorm:"serializer:micros"`
}

func (holdRow) TableName() string { return "exit_holds" }

// lookupRow is a row of exit_lookups.
type lookupRow struct {
	ID       string
	At       time.Time `gorm:"serializer:micros"`
	Operator string
	Reason   string
	ExitIP   string
	ExitPort uint16
	Target   string
	UsedAt   time.Time `gorm:"serializer:micros"`
	Within   int64     // microseconds
	Found    int
}

func (lookupRow) TableName() string { return "exit_lookups" }

func toLookupRow(l exitlog.Lookup) lookupRow {
	q := l.Query
	return lookupRow{ID: l.ID, At: l.At, Operator: l.Operator, Reason: l.Reason, ExitIP: q.Exit.String(),
		ExitPort: q.Port, Target: q.Target, UsedAt: q.At, Within: q.Within.Microseconds(), Found: l.Found}
}

func fromLookupRow(r lookupRow) (exitlog.Lookup, error) {
	exit, err := netip.ParseAddr(r.ExitIP)
	return exitlog.Lookup{ID: r.ID, At: r.At, Operator: r.Operator, Reason: r.Reason, Found: r.Found,
		Query: exitlog.Query{Exit: exit, Port: r.ExitPort, Target: r.Target, At: r.UsedAt,
			Within: time.Duration(r.Within) * time.Microsecond}}, err
}

func (r exits) AddHold(ctx context.Context, h exitlog.Hold) error {
	row := holdRow(h)
	_, err := r.Written(r.Write(ctx).Create(&row))
	return work.Wrap("hold days of the exit log", err)
}

func (r exits) EndHold(ctx context.Context, id string, at time.Time) (bool, error) {
	n, err := r.Written(r.Write(ctx).Model(&holdRow{}).Where("id = ? AND ended_at = 0", id).
		Update("ended_at", column.Micros(at)))
	return n > 0, work.Wrap("end a hold of the exit log", err)
}

func (r exits) Holds(ctx context.Context) ([]exitlog.Hold, error) {
	list, err := work.All(r.ORM(ctx).Order("seq DESC"), func(row holdRow) exitlog.Hold { return exitlog.Hold(row) })
	return list, work.Wrap("list holds of the exit log", err)
}

func (r exits) AddLookup(ctx context.Context, l exitlog.Lookup) error {
	row := toLookupRow(l)
	_, err := r.Written(r.Write(ctx).Create(&row))
	return work.Wrap("keep a look-up of the exit log", err)
}

func (r exits) Lookups(ctx context.Context, limit int) ([]exitlog.Lookup, error) {
	var rows []lookupRow
	err := r.ORM(ctx).Order("seq DESC").Limit(limit).Find(&rows).Error
	list := make([]exitlog.Lookup, len(rows))
	for i := 0; i < len(rows) && err == nil; i++ {
		list[i], err = fromLookupRow(rows[i])
	}
	return list, work.Wrap("list look-ups of the exit log", err)
}
