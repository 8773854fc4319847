package sessions

import (
	"context"
	"fmt"
	"strconv"
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
func (r repository) List(
	ctx context.Context, agentID string, f ports.SessionFilter, page domain.Page,
) (domain.List[ports.SessionRead], error) {
	key := ListKey{agentID, ports.SessionPage{Filter: f, Page: page}}
	if missing, err := ListTable.Missing(r.Set, []ListKey{key}); err != nil || len(missing) == 0 {
		p, _ := ListTable.Peek(r.Set, key)
		return p.page(page.Size), err
	}
	list := domain.List[ports.SessionRead]{Page: page}
	where, args := sessionWhere(agentID, f)
	if err := r.Row(countOf(where, f, r.Database.By("sessions_open")), args...).Scan(&list.Total); err != nil {
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

func (r repository) ListByKey(ctx context.Context, agentID string, f ports.SessionFilter) (
	list []ports.KeySessions, err error,
) {
	where, args := sessionWhere(agentID, f)
	query := "SELECT s.bought_by, COUNT(*), SUM(CASE WHEN s.status IN ('creating', 'active') THEN 1 ELSE 0 END)" +
		" FROM sessions s WHERE " + where + " GROUP BY s.bought_by ORDER BY s.bought_by"
	err = r.Rows(ctx, query, args, func(row engine.Row) error {
		var k ports.KeySessions
		err := row.Scan(&k.Key, &k.Total, &k.Live)
		list = append(list, k)
		return err
	})
	return list, work.Wrap("count sessions of "+agentID+" by key", err)
}

// places lists the numbers of the sessions of a page, and the one after it.
func (r repository) places(
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

// reads lists sessions of an agent by their numbers, newest first.
func (r repository) reads(ctx context.Context, agentID string, ords []int64) ([]ports.SessionRead, error) {
	found := make([]ports.SessionRead, 0, len(ords))
	list, size := work.In(2, len(ords))
	args := []any{agentID}
	for i := range size {
		args = append(args, ords[min(i, len(ords)-1)])
	}
	query := ReadFrom + "WHERE s.agent_id = ?1 AND s.ord IN " + list + " ORDER BY s.ord DESC" + r.ForUpdate("s")
	err := r.Rows(ctx, query, args, func(row engine.Row) error {
		read, err := ScanRead(row)
		found = append(found, read)
		return err
	})
	return found, err
}

func (r repository) Newest(_ context.Context, agentID, keyID, productNo string) (session.Session, error) {
	where, args := "", []any{agentID, productNo}
	if keyID != "" {
		where, args = " AND bought_by = ?3", append(args, keyID)
	}
	return scanSession("the newest",
		r.Row("SELECT "+selectRow+" FROM sessions s"+r.Database.By("sessions_open")+
			" WHERE agent_id = ?1 AND product_no = ?2"+where+" AND "+Live+" ORDER BY ord DESC LIMIT 1"+r.ForUpdate("s"),
			args...))
}

func (r repository) Live(ctx context.Context, agentID string, keyIDs ...string) ([]string, error) {
	args := []any{agentID}
	query := "SELECT id FROM sessions" + r.Database.By("sessions_open") + " WHERE agent_id = ?1 AND " + Live
	if len(keyIDs) > 0 {
		list, size := work.In(2, len(keyIDs))
		for i := range size {
			args = append(args, keyIDs[min(i, len(keyIDs)-1)])
		}
		query += " AND bought_by IN " + list
	}
	return r.list(ctx, "live", query+" ORDER BY ord", args...)
}

var unbooked = "SELECT " + DueColumns + " FROM sessions s WHERE s.agent_id = ?1 AND " + Unbooked

func (r repository) Unbooked(ctx context.Context, agentID string) ([]ports.Hour, error) {
	missing, err := HoldingTable.Missing(r.Set, []string{agentID})
	if err != nil {
		return nil, err
	}
	holding, _ := HoldingTable.Peek(r.Set, agentID)
	if len(missing) == 0 {
		return SumsOfDue(holding)
	}
	err = r.Rows(ctx, unbooked, []any{agentID}, func(row engine.Row) error {
		var d DueRow
		err := row.Scan(d.Targets()...)
		holding = append(holding, d)
		return err
	})
	if err != nil {
		return nil, work.Wrap("sum what is not charged yet of "+agentID, err)
	}
	return SumsOfDue(holding)
}

const (
	// spentByKey sums the sessions of an agent by key, and usedByKey has what is used up and not charged yet.
	spentByKey = `SELECT bought_by, CAST(SUM(held_trial + held_own) AS BIGINT),
		CAST(SUM(charged_trial + charged_own - refunded_trial - refunded_own) AS BIGINT),
		SUM(CASE WHEN status IN ('creating', 'active') THEN 1 ELSE 0 END)
		FROM sessions WHERE agent_id = ?1 GROUP BY bought_by`
	usedByKey = "SELECT s.bought_by, " + DueColumns + " FROM sessions s WHERE s.agent_id = ?1 AND " + Unbooked
)

func (r repository) SpentByKey(ctx context.Context, agentID string) (map[string]ports.KeySpent, error) {
	found := map[string]ports.KeySpent{}
	err := r.Rows(ctx, spentByKey, []any{agentID}, func(row engine.Row) error {
		var id string
		var k ports.KeySpent
		err := row.Scan(&id, &k.Held, &k.Spent, &k.Live)
		found[id] = k
		return err
	})
	if err != nil {
		return nil, work.Wrap("sum the sessions of "+agentID+" by key", err)
	}
	err = r.Rows(ctx, usedByKey, []any{agentID}, func(row engine.Row) error {
		var id string
		var d DueRow
		if err := row.Scan(append([]any{&id}, d.Targets()...)...); err != nil {
			return err
		}
		due, err := d.Due()
		k := found[id]
		k.Held, k.Spent = k.Held-due, k.Spent+due
		found[id] = k
		return err
	})
	return found, work.Wrap("sum what is not charged yet of "+agentID+" by key", err)
}

// Count reads the number of the last session, as none is ever removed.
func (r repository) Count(_ context.Context, agentID string) (n ports.SessionCount, err error) {
	of := "(SELECT COUNT(*) FROM sessions" + r.Database.By("sessions_open") +
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
var expiring = "SELECT " + selectRow + ` FROM sessions s
	WHERE s.status = 'active' AND s.type = 'static' AND s.expires_at > ?1 AND s.expires_at <= ?2
	ORDER BY s.expires_at LIMIT ?3`

func (r repository) Expiring(ctx context.Context, from, to time.Time, limit int) ([]session.Session, error) {
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

func (r repository) TimeDue(ctx context.Context, now time.Time, limit int) ([]string, error) {
	return r.list(ctx, "time due", `SELECT id FROM sessions WHERE status = 'active' AND type = 'static'
		AND expires_at > 0 AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2`, column.Micros(now), limit)
}

func (r repository) SettleDue(ctx context.Context, now time.Time, limit int) ([]string, error) {
	return r.list(ctx, "settlement due", `SELECT id FROM sessions WHERE settle_at > 0 AND settle_at <= ?1
		ORDER BY settle_at LIMIT ?2`, column.Micros(now), limit)
}

func (r repository) CreatingSince(ctx context.Context, before time.Time, limit int) ([]string, error) {
	return r.list(ctx, "creating", `SELECT id FROM sessions WHERE counted = 0 AND status = 'creating' AND created_at < ?1
		ORDER BY created_at LIMIT ?2`, column.Micros(before), limit)
}

func (r repository) list(ctx context.Context, which, query string, args ...any) ([]string, error) {
	ids, err := r.Texts(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list sessions (%s): %w", which, err)
	}
	return ids, nil
}

func (r repository) Lock(_ context.Context, ids []string) error {
	if len(ids) > 0 {
		r.Hold(ids...)
	}
	return nil
}

// What the sessions that one key bought did, and what they used up.
const (
	keyCount = `SELECT COUNT(*), COALESCE(SUM(CASE WHEN s.status = 'creating' THEN 1 ELSE 0 END), 0),
		COALESCE(SUM(CASE WHEN s.status = 'active' THEN 1 ELSE 0 END), 0),
		CAST(COALESCE(SUM(s.up + s.down), 0) AS BIGINT), CAST(COALESCE(SUM(s.rotations + s.worker_rotations), 0) AS BIGINT)
		FROM sessions s WHERE s.agent_id = ?1 AND s.bought_by = ?2`

	keyUnbooked = "SELECT " + DueColumns + " FROM sessions s WHERE s.agent_id = ?1 AND s.bought_by = ?2 AND " + Unbooked
)

func (r repository) KeyUnbooked(ctx context.Context, agentID, keyID string) ([]ports.Hour, error) {
	var holding []DueRow
	err := r.Rows(ctx, keyUnbooked, []any{agentID, keyID}, func(row engine.Row) error {
		var d DueRow
		err := row.Scan(d.Targets()...)
		holding = append(holding, d)
		return err
	})
	if err != nil {
		return nil, work.Wrap("sum what is not charged yet of "+keyID, err)
	}
	return SumsOfDue(holding)
}

func (r repository) KeyCount(_ context.Context, agentID, keyID string) (n ports.KeyCount, err error) {
	err = r.Row(keyCount, agentID, keyID).Scan(&n.Total, &n.Creating, &n.Active, &n.Bytes, &n.Rotations)
	if err != nil {
		err = fmt.Errorf("count sessions of %s: %w", keyID, r.Failed(err))
	}
	return n, err
}
