package sessions

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/ports"
)

// summaries reads the first bytes of the states, in which the risk is. Its two parts use an index
// of live sessions, and the numbers of the last ones.
func summaries(d *work.Database) string {
	return summariesOf(d, "s.agent_id = ?1") + `
	UNION ALL ` + summaryFrom + "(SELECT * FROM sessions WHERE agent_id = ?1 ORDER BY ord DESC LIMIT ?2) s" +
		summaryWith + `
	WHERE s.status NOT IN ('creating', 'active') ORDER BY 1 DESC`
}

// summariesOf reads those of live sessions.
func summariesOf(d *work.Database, where string) string {
	return summaryFrom + "sessions s" + d.By("sessions_open") + summaryWith + " WHERE " + where + " AND " + Live
}

var (
	summaryFrom = "SELECT s.ord, s.id, s.type, s.status, s.usage_at, s.expires_at, substr(h.state, 1, " +
		strconv.Itoa(health.SummarySize) + `),
		CASE WHEN EXISTS (SELECT 1 FROM workers w WHERE w.session = s.seq) OR s.ended_at > 0 AND EXISTS (
			SELECT 1 FROM session_archive a WHERE a.session = s.seq) THEN 1 ELSE 0 END FROM `
	summaryWith = " LEFT JOIN session_health h ON h.session = s.seq"
)

func (r healths) Summaries(ctx context.Context, agentID string, last int) ([]ports.SessionSummary, error) {
	return r.summaries(ctx, summaries(r.Database), agentID, last)
}

func (r healths) LiveSummaries(
	ctx context.Context, agentID string, f ports.SessionFilter,
) ([]ports.SessionSummary, error) {
	where, args := sessionWhere(agentID, f)
	return r.summaries(ctx, summariesOf(r.Database, where)+" ORDER BY 1 DESC", args...)
}

// summaries reads what a query finds. The first argument is the agent.
func (r healths) summaries(ctx context.Context, query string, args ...any) (list []ports.SessionSummary, err error) {
	err = r.Rows(ctx, query, args, func(rows engine.Row) error {
		var g ports.SessionSummary
		var ord, usedAt, expires int64
		var state sql.RawBytes
		if err := rows.Scan(&ord, &g.ID, &g.Type, &g.Status, &usedAt, &expires, &state, &g.Workers); err != nil {
			return err
		}
		g.UsedAt, g.Expires = column.Time(usedAt), column.Time(expires)
		var err error
		if len(state) > 0 {
			g.Health, err = health.DecodeSummary(state)
		}
		list = append(list, g)
		return work.Wrap("health of "+g.ID, err)
	})
	return list, work.Wrap(fmt.Sprint("read health of ", args[0]), err)
}

// newestEvents reads the chunks that hold the last events of sessions.
const newestEvents = `SELECT s.id, c.body FROM (SELECT id, seq,
	(SELECT MAX(m.last_no) FROM event_chunks m WHERE m.session = sessions.seq) AS top FROM sessions WHERE id IN %s) s
	CROSS JOIN event_chunks c WHERE c.session = s.seq AND c.last_no > s.top - ?%d ORDER BY s.id, c.last_no DESC`

func (r events) Newest(
	ctx context.Context, sessionIDs []string, atLeast int,
) (map[string][]eventlog.Event, error) {
	found := make(map[string][]eventlog.Event, len(sessionIDs))
	if len(sessionIDs) == 0 {
		return found, nil
	}
	list, args := work.InTexts(sessionIDs)
	query := fmt.Sprintf(newestEvents, list, len(args)+1)
	err := r.Rows(ctx, query, append(args, atLeast), func(rows engine.Row) error {
		var id string
		var body sql.RawBytes
		if err := rows.Scan(&id, &body); err != nil {
			return err
		}
		chunk, err := codec.DecodeEvents(body)
		for i := range chunk {
			found[id] = append(found[id], chunk[len(chunk)-1-i])
		}
		return err
	})
	return found, work.Wrap("read the newest events of sessions", err)
}
