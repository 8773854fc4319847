package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/domain/audit"
)

// auditTrail keeps what operators did.
type auditTrail struct{ *tx }

// purgedAtOnce is how many actions that are too old go with a new one, so that the table shrinks
// although only new actions shrink it.
const purgedAtOnce = 10

// purgeActions looks at the oldest rows alone.
const purgeActions = `DELETE FROM audit_actions WHERE at < ?1
	AND seq IN (SELECT seq FROM audit_actions ORDER BY seq LIMIT ?2)`

func (r auditTrail) Append(_ context.Context, a audit.Action) error {
	_, err := r.exec(`INSERT INTO audit_actions (id, at, who, via, name, subject, reason, ref, details)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (name, ref) WHERE ref <> '' DO NOTHING`,
		a.ID, micros(a.At), a.By, string(a.Via), a.Name, a.Subject, a.Reason, a.Ref, a.Details)
	if err == nil {
		_, err = r.exec(purgeActions, micros(a.At.Add(-audit.Keep)), purgedAtOnce)
	}
	return wrap("keep an action of the operator", err)
}

func (r auditTrail) List(
	ctx context.Context, f audit.Filter, page domain.Page,
) (domain.List[audit.Action], error) {
	list := domain.List[audit.Action]{Page: page}
	var c conditions
	c.text("who = ?", f.By)
	c.text("name = ?", f.Name)
	c.text("subject = ?", f.Subject)
	c.time("at >= ?", f.From)
	c.time("at < ?", f.To)
	err := r.row("SELECT COUNT(*) FROM audit_actions"+c.where(), c.args...).Scan(&list.Total)
	if err == nil && list.Total > page.Offset() {
		query := "SELECT id, at, who, via, name, subject, reason, ref, details FROM audit_actions" + c.where() +
			" ORDER BY seq DESC" + c.page(page)
		err = r.rows(ctx, query, c.args, func(row engine.Row) error {
			var a audit.Action
			var at int64
			err := row.Scan(&a.ID, &at, &a.By, &a.Via, &a.Name, &a.Subject, &a.Reason, &a.Ref, &a.Details)
			a.At = fromMicros(at)
			list.Items = append(list.Items, a)
			return err
		})
	}
	return list, wrap("list actions of the operator", err)
}

// conditions builds the WHERE clause of a list.
type conditions struct {
	parts []string
	args  []any
}

// add adds a condition, in which each ? is replaced by the number of the value.
func (c *conditions) add(condition string, value any) {
	c.args = append(c.args, value)
	c.parts = append(c.parts, strings.ReplaceAll(condition, "?", fmt.Sprintf("?%d", len(c.args))))
}

// where returns the clause, empty without a condition.
func (c *conditions) where() string {
	if len(c.parts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.parts, " AND ")
}

// page adds the bounds of a page and returns their clause.
func (c *conditions) page(p domain.Page) string {
	c.args = append(c.args, p.Size, p.Offset())
	return fmt.Sprintf(" LIMIT ?%d OFFSET ?%d", len(c.args)-1, len(c.args))
}

// text adds a condition on a text, unless that is empty.
func (c *conditions) text(condition, value string) {
	if value != "" {
		c.add(condition, value)
	}
}

// time adds a condition on a time, unless that is zero.
func (c *conditions) time(condition string, at time.Time) {
	if !at.IsZero() {
		c.add(condition, micros(at))
	}
}
