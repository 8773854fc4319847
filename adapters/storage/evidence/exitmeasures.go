package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// exitMeasures keeps what was measured of exits.
type exitMeasures struct{ *work.Unit }

// ExitMeasures returns the measurements of exits in a unit.
func ExitMeasures(u *work.Unit) ports.ExitMeasures { return exitMeasures{u} }

// measureRow is a row of exit_measures.
type measureRow struct {
	SessionID  string
	Worker     string
	Idx        int
	AgentID    string
	OfExit     string
	IP         string
	MeasuredAt time.Time `gorm:"serializer:micros"`
	Declared   string
	Facts      string
	DueAt      time.Time `gorm:"serializer:micros"`
	Announced  int64
	Failures   int
	FailedAt   time.Time `gorm:"serializer:micros"`
}

func (measureRow) TableName() string { return "exit_measures" }

// storedFacts are the facts of a row. What is not known is left out, but a list that has nothing.
type storedFacts struct {
	Country  string       `json:"country,omitempty"`
	Region   string       `json:"region,omitempty"`
	City     string       `json:"city,omitempty"`
	Timezone string       `json:"timezone,omitempty"`
	ASN      uint32       `json:"asn,omitempty"`
	ASName   string       `json:"as_name,omitempty"`
	Network  exit.Network `json:"network,omitempty"`
	Listed   []string     `json:"listed"`
	Disputed bool         `json:"disputed,omitempty"`
}

func toMeasureRow(r exit.Record) (measureRow, error) {
	facts, err := json.Marshal(storedFacts(r.Measured.Known))
	row := measureRow{SessionID: r.SessionID, Worker: r.Worker, Idx: r.Index, AgentID: r.AgentID, OfExit: r.Of,
		MeasuredAt: r.At, Declared: r.Declared, Facts: string(facts), DueAt: r.DueAt, Announced: column.Flag(r.Told),
		Failures: r.Failures, FailedAt: r.FailedAt}
	if r.IP.IsValid() {
		row.IP = r.IP.String()
	}
	return row, err
}

func fromMeasureRow(row measureRow) (exit.Record, error) {
	r := exit.Record{Ref: exit.Ref{AgentID: row.AgentID, SessionID: row.SessionID, Worker: row.Worker, Index: row.Idx},
		Of: row.OfExit, DueAt: row.DueAt, Told: row.Announced != 0, Failures: row.Failures, FailedAt: row.FailedAt}
	var facts storedFacts
	if err := json.Unmarshal([]byte(row.Facts), &facts); err != nil {
		return r, fmt.Errorf("facts of an exit of %s: %w", row.SessionID, err)
	}
	r.Measured = exit.Measured{Known: exit.Known(facts), At: row.MeasuredAt, Declared: row.Declared}
	if row.IP == "" {
		return r, nil
	}
	var err error
	r.IP, err = netip.ParseAddr(row.IP)
	return r, err
}

// records reads the rows of a query.
func records(query *gorm.DB) ([]exit.Record, error) {
	var rows []measureRow
	if err := query.Find(&rows).Error; err != nil {
		return nil, err
	}
	list := make([]exit.Record, len(rows))
	for i, row := range rows {
		var err error
		if list[i], err = fromMeasureRow(row); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r exitMeasures) Of(ctx context.Context, sessionIDs []string) ([]exit.Record, error) {
	if len(sessionIDs) == 0 {
		return nil, nil
	}
	list, err := records(r.ORM(ctx).Where("session_id IN ?", work.SomeSizes(sessionIDs)).Order("session_id, worker, idx"))
	return list, work.Wrap("read what was measured of exits", err)
}

func (r exitMeasures) Get(ctx context.Context, e exit.Ref) (exit.Record, bool, error) {
	list, err := records(at(r.ORM(ctx), e))
	if err != nil || len(list) == 0 {
		return exit.Record{Ref: e}, false, work.Wrap("read what was measured of an exit", err)
	}
	return list[0], true, nil
}

// replaceMeasure lets an insertion take the place of the row of its exit.
var replaceMeasure = clause.OnConflict{Columns: []clause.Column{{Name: "session_id"}, {Name: "worker"}, {Name: "idx"}},
	UpdateAll: true}

func (r exitMeasures) Put(ctx context.Context, record exit.Record) error {
	row, err := toMeasureRow(record)
	if err == nil {
		_, err = r.Written(r.Write(ctx).Clauses(replaceMeasure).Create(&row))
	}
	return work.Wrap("store what was measured of an exit", err)
}

func (r exitMeasures) Due(ctx context.Context, now time.Time, limit int) ([]exit.Record, error) {
	list, err := records(r.ORM(ctx).Where("due_at <= ?", column.Micros(now)).Order("due_at").Limit(limit))
	return list, work.Wrap("list exits to be measured", err)
}

// at narrows a query to the row of an exit.
func at(db *gorm.DB, e exit.Ref) *gorm.DB {
	return db.Where("session_id = ? AND worker = ? AND idx = ?", e.SessionID, e.Worker, e.Index)
}

func (r exitMeasures) Postpone(ctx context.Context, e exit.Ref, due time.Time) error {
	_, err := r.Written(at(r.Write(ctx), e).Model(&measureRow{}).Update("due_at", column.Micros(due)))
	return work.Wrap("set when an exit is measured", err)
}

func (r exitMeasures) Drop(ctx context.Context, e exit.Ref) error {
	_, err := r.Written(at(r.Write(ctx), e).Delete(&measureRow{}))
	return work.Wrap("drop what was measured of an exit", err)
}

func (r exitMeasures) Unmeasured(ctx context.Context, limit int) (ids []string, err error) {
	err = r.ORM(ctx).Table("sessions s").Where("s.status = ? AND s.type = ?", session.Active, session.Static).
		Where("NOT EXISTS (SELECT 1 FROM exit_measures m WHERE m.session_id = s.id AND m.worker = '')").
		Limit(limit).Pluck("s.id", &ids).Error
	return ids, work.Wrap("list sessions whose exits were not measured", err)
}

// qualityRow is a row of Quality.
type qualityRow struct {
	Source, Declared                    string
	Exits, Measured, Differing, Matched int
	OldestAt                            int64
}

// countExits finds those on a list by its JSON, which has no space.
const countExits = `s.provider AS source, m.declared, COUNT(*) AS exits,
	SUM(CASE WHEN m.ip <> '' THEN 1 ELSE 0 END) AS measured, SUM(m.announced) AS differing,
	SUM(CASE WHEN m.facts LIKE '%"listed":["%' THEN 1 ELSE 0 END) AS matched,
	COALESCE(MIN(CASE WHEN m.ip <> '' THEN m.measured_at END), 0) AS oldest_at`

func (r exitMeasures) Quality(ctx context.Context) ([]exit.Quality, error) {
	var rows []qualityRow
	err := r.ORM(ctx).Table("exit_measures m").Joins("JOIN sessions s ON s.id = m.session_id").Select(countExits).
		Group("s.provider, m.declared").Order("s.provider, m.declared").Scan(&rows).Error
	list := make([]exit.Quality, len(rows))
	for i, row := range rows {
		list[i] = exit.Quality{Source: row.Source, Declared: row.Declared, Exits: row.Exits, Measured: row.Measured,
			Differing: row.Differing, Listed: row.Matched, OldestAt: column.Time(row.OldestAt)}
	}
	return list, work.Wrap("count the exits by what was measured", err)
}
