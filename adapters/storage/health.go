package storage

import (
	"context"
	"fmt"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// healths keeps the health state of sessions.
type healths struct{ *tx }

// maxIn bounds the parameters of one query.
const maxIn = 512

func (r healths) Get(ctx context.Context, agentID string, ids []string) (map[string]ports.HealthRead, error) {
	if r.batch != nil {
		return r.batch.healths(agentID, ids)
	}
	found := make(map[string]ports.HealthRead, len(ids))
	for len(ids) > 0 {
		part := ids[:min(len(ids), maxIn)]
		ids = ids[len(part):]
		if err := r.get(ctx, agentID, part, found); err != nil {
			return nil, fmt.Errorf("read health: %w", err)
		}
	}
	return found, nil
}

func (r healths) get(ctx context.Context, agentID string, ids []string, found map[string]ports.HealthRead) error {
	r.hold(ids...)
	list, size := work.In(2, len(ids))
	args := make([]any, 1, size+1)
	args[0] = agentID
	for i := range size {
		args = append(args, ids[min(i, len(ids)-1)])
	}
	return r.Rows(ctx, `SELECT s.id, s.agent_id, s.type, s.status, h.state
		FROM sessions s LEFT JOIN session_health h ON h.session = s.seq
		WHERE s.id IN `+list+` AND (?1 = '' OR s.agent_id = ?1)`, args, func(rows engine.Row) error {
		var id, owner, kind, status string
		var blob []byte
		if err := rows.Scan(&id, &owner, &kind, &status, &blob); err != nil {
			return err
		}
		state, err := fromHealthBlob(blob)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		found[id] = ports.HealthRead{State: state, AgentID: owner, Type: session.Type(kind), Status: session.Status(status)}
		return nil
	})
}

const putHealth = `INSERT INTO session_health (session, state) SELECT seq, ?2 FROM sessions WHERE id = ?1
	ON CONFLICT (session) DO UPDATE SET state = excluded.state`

func (r healths) Put(_ context.Context, id string, s health.State) error {
	blob, err := s.MarshalBinary()
	if err != nil {
		return fmt.Errorf("encode health of %s: %w", id, err)
	}
	if r.batch != nil {
		return r.batch.putHealth(id, blob)
	}
	r.Touch(id)
	n, err := r.Exec(putHealth, id, blob)
	if err != nil {
		return fmt.Errorf("write health of %s: %w", id, err)
	}
	if n == 0 {
		return session.ErrNotFound
	}
	return nil
}
