package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// List finds the page of the whole list by number, because sessions are
// numbered within their agent and never removed. A filter is counted and walked
// within what there is of this agent only.
func (r sessions) List(
	ctx context.Context, agentID string, f ports.SessionFilter, page domain.Page,
) (domain.List[ports.SessionRead], error) {
	if r.batch != nil {
		return r.batch.list(listKey{agentID, ports.SessionPage{Filter: f, Page: page}})
	}
	list := domain.List[ports.SessionRead]{Page: page}
	where, args := sessionWhere(agentID, f)
	if err := r.Row(r.store.countOf(where, f), args...).Scan(&list.Total); err != nil {
		return list, fmt.Errorf("count sessions of %s: %w", agentID, err)
	}
	places, err := r.places(ctx, f, where, args, page, list.Total)
	if err != nil || len(places) == 0 {
		return list, work.Wrap("list sessions of "+agentID, err)
	}
	if len(places) > page.Size {
		places = places[:page.Size]
		list.Next = places[page.Size-1]
	}
	list.Items, err = r.reads(ctx, agentID, places)
	return list, work.Wrap("list sessions of "+agentID, err)
}

// countOf counts the sessions of a list. Every session of an agent has a number, and those that ended
// are counted by what is counted of them.
func (s *Store) countOf(where string, f ports.SessionFilter) string {
	kinds := ports.SessionFilter{Status: f.Status, Type: f.Type, ProductNo: f.ProductNo}
	switch {
	case f == ports.SessionFilter{}:
		return "SELECT COALESCE(MAX(s.ord), 0) FROM sessions s WHERE " + where
	case f != kinds || f.Status == session.Creating || f.Status == session.Active:
		return "SELECT COUNT(*) FROM sessions s WHERE " + where
	}
	// The columns are hidden from the indexes of the filters, which do not have what is counted.
	hidden := where
	for _, column := range []string{"s.status", "s.type", "s.product_no"} {
		hidden = strings.Replace(hidden, column+" = ", column+" || '' = ", 1)
	}
	query := "SELECT CAST(COALESCE((SELECT SUM(n) FROM session_counts s WHERE " + where + "), 0) AS BIGINT)" +
		" + (SELECT COUNT(*) FROM sessions s" +
		s.by("sessions_open") + " WHERE " + hidden + " AND " + uncounted + ")"
	if f.Status == "" {
		query += " + (SELECT COUNT(*) FROM sessions s" + s.by("sessions_open") + " WHERE " + hidden + " AND " + live + ")"
	}
	return query
}

// places lists the numbers of the sessions of a page, and the one after it.
func (r sessions) places(
	ctx context.Context, f ports.SessionFilter, where string, args []any, page domain.Page, total int,
) (found []int64, err error) {
	offset := page.Offset()
	place := func(v any) string {
		args = append(args[:len(args):len(args)], v)
		return "?" + strconv.Itoa(len(args))
	}
	switch {
	case page.After > 0:
		where += " AND s.ord < " + place(page.After)
		offset = 0
	case offset >= total:
		return nil, nil
	case f == ports.SessionFilter{}:
		where += " AND s.ord <= " + place(total-offset)
		offset = 0
	}
	query := newestWhere(where, f, page.Size+1, offset, place)
	err = r.Rows(ctx, query, args, func(row engine.Row) error {
		var ord int64
		err := row.Scan(&ord)
		found = append(found, ord)
		return err
	})
	return found, err
}

// newestWhere selects numbers of the sessions of a list, newest first. place adds an argument. The
// index of products has the status before the number, so without a status the newest of each are
// merged.
func newestWhere(where string, f ports.SessionFilter, limit, offset int, place func(any) string) string {
	query := "SELECT s.ord FROM sessions s WHERE " + where
	if f.ProductNo != "" && f.Status == "" {
		parts, each := make([]string, len(statuses)), place(limit+offset)
		for i, status := range statuses {
			parts[i] = "SELECT s.ord FROM (" + query + " AND s.status = '" + string(status) +
				"' ORDER BY s.ord DESC LIMIT " + each + ") s"
		}
		query = "SELECT s.ord FROM (" + strings.Join(parts, " UNION ALL ") + ") s"
	}
	return query + " ORDER BY s.ord DESC LIMIT " + place(limit) + " OFFSET " + place(offset)
}

// statuses are those that a session may have.
var statuses = []session.Status{session.Creating, session.Active, session.Terminated, session.Expired, session.Failed}

// reads lists sessions of an agent by their numbers, newest first.
func (r sessions) reads(ctx context.Context, agentID string, ords []int64) ([]ports.SessionRead, error) {
	found := make([]ports.SessionRead, 0, len(ords))
	list, size := work.In(2, len(ords))
	args := []any{agentID}
	for i := range size {
		args = append(args, ords[min(i, len(ords)-1)])
	}
	query := sessionReadFrom + "WHERE s.agent_id = ?1 AND s.ord IN " + list + " ORDER BY s.ord DESC" + r.ForUpdate("s")
	err := r.Rows(ctx, query, args, func(rows engine.Row) error {
		read, err := scanSessionRead(rows)
		found = append(found, read)
		return err
	})
	return found, err
}

func (r sessions) Newest(_ context.Context, agentID, productNo string) (session.Session, error) {
	return scanSession("the newest",
		r.Row("SELECT "+sessionSelect+" FROM sessions s"+r.store.by("sessions_open")+
			" WHERE agent_id = ?1 AND product_no = ?2 AND "+live+" ORDER BY ord DESC LIMIT 1"+r.ForUpdate("s"),
			agentID, productNo))
}

func (r sessions) Live(ctx context.Context, agentID string) ([]string, error) {
	return r.list(ctx, "live", "SELECT id FROM sessions"+r.store.by("sessions_open")+" WHERE agent_id = ?1 AND "+live+
		" ORDER BY ord", agentID)
}

func (r sessions) Unbooked(ctx context.Context, agentID string) ([]ports.Hour, error) {
	if r.batch != nil {
		holding, err := r.batch.holdingOf(agentID)
		if err != nil {
			return nil, err
		}
		return sumsOfDue(holding)
	}
	var holding []dueRow
	unbooked := "SELECT " + dueColumns + " FROM sessions s" + r.store.by("sessions_open") +
		" WHERE s.agent_id = ?1 AND " + holdsMoney
	err := r.Rows(ctx, unbooked, []any{agentID}, func(row engine.Row) error {
		var d dueRow
		err := row.Scan(d.targets()...)
		holding = append(holding, d)
		return err
	})
	if err != nil {
		return nil, work.Wrap("sum what is not charged yet of "+agentID, err)
	}
	return sumsOfDue(holding)
}

// Count reads the number of the last session, as none is ever removed.
func (r sessions) Count(_ context.Context, agentID string) (n ports.SessionCount, err error) {
	of := "(SELECT COUNT(*) FROM sessions" + r.store.by("sessions_open") +
		" WHERE agent_id = ?1 AND counted = 0 AND status = "
	query := "SELECT COALESCE((SELECT MAX(ord) FROM sessions WHERE agent_id = ?1), 0), " + of + "'creating'), " +
		of + "'active')"
	err = r.Row(query, agentID).Scan(&n.Total, &n.Creating, &n.Active)
	if err != nil {
		return ports.SessionCount{}, fmt.Errorf("count sessions of %s: %w", agentID, err)
	}
	return n, nil
}

// The status and the type are those of the partial index.
var expiring = "SELECT " + sessionSelect + ` FROM sessions s JOIN agents a ON a.id = s.agent_id
	WHERE s.status = 'active' AND s.type = 'static' AND s.expires_at > ?1 AND s.expires_at <= ?2 AND a.webhook_url <> ''
	ORDER BY s.expires_at LIMIT ?3`

func (r sessions) Expiring(ctx context.Context, from, to time.Time, limit int) ([]session.Session, error) {
	list := []session.Session{}
	err := r.Rows(ctx, expiring, []any{column.Micros(from), column.Micros(to), limit}, func(row engine.Row) error {
		s, err := scanSession("", row)
		list = append(list, s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list sessions (expiring): %w", err)
	}
	return list, nil
}

func (r sessions) TimeDue(ctx context.Context, now time.Time, limit int) ([]string, error) {
	return r.list(ctx, "time due", `SELECT id FROM sessions WHERE status = 'active' AND type = 'static'
		AND expires_at > 0 AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2`, column.Micros(now), limit)
}

func (r sessions) SettleDue(ctx context.Context, now time.Time, limit int) ([]string, error) {
	return r.list(ctx, "settlement due", `SELECT id FROM sessions WHERE settle_at > 0 AND settle_at <= ?1
		ORDER BY settle_at LIMIT ?2`, column.Micros(now), limit)
}

func (r sessions) CreatingSince(ctx context.Context, before time.Time, limit int) ([]string, error) {
	return r.list(ctx, "creating", `SELECT id FROM sessions WHERE counted = 0 AND status = 'creating' AND created_at < ?1
		ORDER BY created_at LIMIT ?2`, column.Micros(before), limit)
}

func (r sessions) list(ctx context.Context, which, query string, args ...any) ([]string, error) {
	ids, err := r.Texts(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list sessions (%s): %w", which, err)
	}
	return ids, nil
}

// seqOf returns the number by which other tables refer to a session.
func (t *tx) seqOf(sessionID string) (seq int64, err error) {
	err = t.Row("SELECT seq FROM sessions WHERE id = ?1", sessionID).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, session.ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("find session %s: %w", sessionID, err)
	}
	return seq, nil
}

// hold locks sessions for what is kept beside them. It is a statement before the
// one that reads: a row that a query had to wait for is read anew, but not what
// the query joins with it.
func (t *tx) hold(ids ...string) {
	if !t.Locks() {
		return
	}
	list, args := work.InTexts(ids)
	query := "SELECT 1 FROM sessions s WHERE s.id IN " + list + " ORDER BY s.id" + t.ForUpdate("s")
	_ = t.LockFirst("lock sessions", query, args...) // the next statement returns its error
}

func (r sessions) Lock(_ context.Context, ids []string) error {
	if len(ids) > 0 {
		r.hold(ids...)
	}
	return nil
}
