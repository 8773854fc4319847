package evidence

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strings"
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
	ExitIP   string // empty: any
	ExitPort uint16
	Target   string    // of a query with more criteria all of them, see criteria
	UsedAt   time.Time `gorm:"serializer:micros"`
	Within   int64     // microseconds
	Found    int
}

func (lookupRow) TableName() string { return "exit_lookups" }

// criteria returns what the column target has of a query: the target, and where more than it is asked for, or
// where it could be taken for that, all criteria as values of a query string. A host has no "=".
func criteria(q exitlog.Query) string {
	v := url.Values{}
	for name, value := range map[string]string{"target": q.Target, "client": addrText(q.Client), "agent": q.Agent,
		"seller": q.Seller, "token": q.Token} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if alone := len(v) == 1 && v.Has("target"); len(v) == 0 || alone && !strings.Contains(q.Target, "=") {
		return q.Target
	}
	return v.Encode()
}

// addrText returns an address, and nothing of an invalid one.
func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func toLookupRow(l exitlog.Lookup) lookupRow {
	q := l.Query
	return lookupRow{ID: l.ID, At: l.At, Operator: l.Operator, Reason: l.Reason, ExitIP: addrText(q.Exit),
		ExitPort: q.Port, Target: criteria(q), UsedAt: q.At, Within: q.Within.Microseconds(), Found: l.Found}
}

func fromLookupRow(r lookupRow) (exitlog.Lookup, error) {
	q := exitlog.Query{Port: r.ExitPort, Target: r.Target, At: r.UsedAt,
		Within: time.Duration(r.Within) * time.Microsecond}
	errs := make([]error, 3)
	if r.ExitIP != "" {
		q.Exit, errs[0] = netip.ParseAddr(r.ExitIP)
	}
	if strings.Contains(r.Target, "=") {
		var v url.Values
		v, errs[1] = url.ParseQuery(r.Target)
		q.Target, q.Agent, q.Seller, q.Token = v.Get("target"), v.Get("agent"), v.Get("seller"), v.Get("token")
		if v.Has("client") {
			q.Client, errs[2] = netip.ParseAddr(v.Get("client"))
		}
	}
	return exitlog.Lookup{ID: r.ID, At: r.At, Operator: r.Operator, Reason: r.Reason, Found: r.Found, Query: q},
		errors.Join(errs...)
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
