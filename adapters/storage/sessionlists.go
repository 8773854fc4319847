package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// List finds the page of the whole list by number, because sessions are
// numbered within their agent and never removed. A filter is counted and walked
// within the index, which grows with this agent's sessions only.
func (r sessions) List(
	ctx context.Context, agentID string, f ports.SessionFilter, page domain.Page,
) (domain.List[ports.SessionRead], error) {
	list := domain.List[ports.SessionRead]{Page: page}
	where, args := sessionWhere(agentID, f)
	count := "SELECT COUNT(*) FROM sessions WHERE " + where
	if f == (ports.SessionFilter{}) {
		count = "SELECT COALESCE(MAX(ord), 0) FROM sessions WHERE " + where
	}
	if err := r.row(count, args...).Scan(&list.Total); err != nil {
		return list, fmt.Errorf("count sessions of %s: %w", agentID, err)
	}
	top := list.Total - page.Offset()
	if top <= 0 {
		return list, nil
	}
	var query string
	if f == (ports.SessionFilter{}) {
		query = "s.ord <= ?2 AND s.ord > ?3"
		args = append(args, top, top-page.Size)
	} else {
		query = "s.ord IN (SELECT ord FROM sessions WHERE " + where + " ORDER BY ord DESC LIMIT ?" +
			strconv.Itoa(len(args)+1) + " OFFSET ?" + strconv.Itoa(len(args)+2) + ")"
		args = append(args, page.Size, page.Offset())
	}
	var err error
	list.Items, err = r.reads(ctx, page.Size, query, args...)
	if err != nil {
		return list, fmt.Errorf("list sessions of %s: %w", agentID, err)
	}
	return list, nil
}

// reads lists sessions of an agent, the first argument, newest first.
func (r sessions) reads(ctx context.Context, room int, where string, args ...any) ([]ports.SessionRead, error) {
	found := make([]ports.SessionRead, 0, room)
	err := r.rows(ctx, sessionReadFrom+"WHERE s.agent_id = ?1 AND "+where+" ORDER BY s.ord DESC"+r.lock("s"), args,
		func(rows engine.Row) error {
			read, err := scanSessionRead(rows)
			found = append(found, read)
			return err
		})
	return found, err
}

func sessionWhere(agentID string, f ports.SessionFilter) (string, []any) {
	where, args := "agent_id = ?1", []any{agentID}
	add := func(column, value string) {
		if value != "" {
			args = append(args, value)
			where += " AND " + column + " = ?" + strconv.Itoa(len(args))
		}
	}
	add("status", string(f.Status))
	add("type", string(f.Type))
	add("product_no", f.ProductNo)
	return where, args
}

// live are the states of a session that can still cost or give something. The
// queries repeat the words of the partial index, or it is not used.
const live = "status IN ('creating', 'active')"

func (r sessions) Newest(_ context.Context, agentID, productNo string) (session.Session, error) {
	return scanSession("the newest",
		r.row("SELECT "+sessionSelect+" FROM sessions s WHERE agent_id = ?1 AND product_no = ?2"+
			" AND "+live+" ORDER BY ord DESC LIMIT 1"+r.lock("s"), agentID, productNo))
}

func (r sessions) Live(ctx context.Context, agentID string) ([]string, error) {
	return r.list(ctx, "live", `SELECT id FROM sessions WHERE agent_id = ?1 AND `+live+` ORDER BY ord`, agentID)
}

func (r sessions) Holding(ctx context.Context, agentID string) ([]ports.SessionRead, error) {
	holding, err := r.reads(ctx, 0, "s.held_trial + s.held_own > 0", agentID)
	if err != nil {
		return nil, fmt.Errorf("list sessions of %s that hold money: %w", agentID, err)
	}
	return holding, nil
}

const countSessions = `SELECT COALESCE((SELECT MAX(ord) FROM sessions WHERE agent_id = ?1), 0),
	(SELECT COUNT(*) FROM sessions WHERE agent_id = ?1 AND ` + live + ` AND status = 'creating'),
	(SELECT COUNT(*) FROM sessions WHERE agent_id = ?1 AND ` + live + ` AND status = 'active')`

// Count reads the number of the last session, as none is ever removed.
func (r sessions) Count(_ context.Context, agentID string) (n ports.SessionCount, err error) {
	err = r.row(countSessions, agentID).Scan(&n.Total, &n.Creating, &n.Active)
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
	err := r.rows(ctx, expiring, []any{micros(from), micros(to), limit}, func(row engine.Row) error {
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
		AND expires_at > 0 AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2`, micros(now), limit)
}

func (r sessions) SettleDue(ctx context.Context, now time.Time, limit int) ([]string, error) {
	return r.list(ctx, "settlement due", `SELECT id FROM sessions WHERE settle_at > 0 AND settle_at <= ?1
		ORDER BY settle_at LIMIT ?2`, micros(now), limit)
}

func (r sessions) CreatingSince(ctx context.Context, before time.Time, limit int) ([]string, error) {
	return r.list(ctx, "creating", `SELECT id FROM sessions WHERE status = 'creating' AND created_at < ?1
		ORDER BY created_at LIMIT ?2`, micros(before), limit)
}

func (r sessions) list(ctx context.Context, which, query string, args ...any) ([]string, error) {
	ids, err := r.texts(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list sessions (%s): %w", which, err)
	}
	return ids, nil
}

// seqOf is the number by which other tables know a session.
func (t *tx) seqOf(sessionID string) (seq int64, err error) {
	err = t.row("SELECT seq FROM sessions WHERE id = ?1", sessionID).Scan(&seq)
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
	if !t.locks() {
		return
	}
	list, args := inTexts(ids)
	query := "SELECT 1 FROM sessions s WHERE s.id IN " + list + " ORDER BY s.id" + t.lock("s")
	_ = t.Queue("lock sessions", query, args) // the next statement returns its error
}

func (r sessions) Lock(_ context.Context, ids []string) error {
	if len(ids) > 0 {
		r.hold(ids...)
	}
	return nil
}
