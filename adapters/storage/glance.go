package storage

import (
	"context"
	"fmt"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

func (r healths) Live(ctx context.Context, agentID string) (list []ports.LiveHealth, err error) {
	err = r.rows(ctx, `SELECT s.id, s.type, s.status, h.state
		FROM sessions s LEFT JOIN session_health h ON h.session = s.seq
		WHERE s.agent_id = ?1 AND s.status IN ('creating', 'active') ORDER BY s.ord DESC`, []any{agentID},
		func(rows engine.Row) error {
			var id, kind, status string
			var blob []byte
			if err := rows.Scan(&id, &kind, &status, &blob); err != nil {
				return err
			}
			state, err := fromHealthBlob(blob)
			if err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			list = append(list, ports.LiveHealth{ID: id, HealthRead: ports.HealthRead{State: state, AgentID: agentID,
				Type: session.Type(kind), Status: session.Status(status)}})
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("read health of %s: %w", agentID, err)
	}
	return list, nil
}

// recentEvents reads the newest chunk of each session in the index of the chunks.
const recentEvents = `SELECT r.id FROM (SELECT s.id, s.ord, (SELECT c.last_at FROM event_chunks c
	WHERE c.session = s.seq ORDER BY c.last_no DESC LIMIT 1) AS at FROM sessions s WHERE s.agent_id = ?1) r
	WHERE r.at IS NOT NULL ORDER BY r.at DESC, r.ord DESC LIMIT ?2`

func (r events) Recent(ctx context.Context, agentID string, limit int) (ids []string, err error) {
	err = r.rows(ctx, recentEvents, []any{agentID, limit}, func(rows engine.Row) error {
		var id string
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list sessions of %s by their events: %w", agentID, err)
	}
	return ids, nil
}

// sessionHours looks each hour up by the key of the table, which begins with the agent and the hour.
const sessionHours = `WITH RECURSIVE t(hour) AS (
	SELECT CAST(?3 AS BIGINT) UNION ALL SELECT hour + ?5 FROM t WHERE hour + ?5 < ?4)
	SELECT h.hour, h.up, h.down, h.connections, h.charged, h.refunded, h.recharged
	FROM t JOIN usage_hours h ON h.agent_id = ?1 AND h.hour = t.hour AND h.session_id = ?2 ORDER BY h.hour`

func (r ledger) SessionHours(
	ctx context.Context, agentID, sessionID string, from, to time.Time,
) (hours []ports.Hour, err error) {
	err = r.rows(ctx, sessionHours, []any{agentID, sessionID, micros(from), micros(to), time.Hour.Microseconds()},
		func(rows engine.Row) error {
			var h ports.Hour
			var start int64
			err := rows.Scan(append([]any{&start}, sums(&h.Totals)...)...)
			h.Start = fromMicros(start)
			hours = append(hours, h)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("read hours of %s: %w", sessionID, err)
	}
	return hours, nil
}
