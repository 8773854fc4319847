package storage

import (
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// The methods below are those of the repositories for a unit in a batch. What was not read ahead, and
// what would be refused by the database for a reason of its own, makes the unit run again alone.

// anySession returns a session, whosoever it is.
func (b *batch) anySession(id string) (batchSession, error) {
	s, ok := b.sessions.get(id)
	switch {
	case ok:
		return s, nil
	case b.whole[id]:
		return s, session.ErrNotFound
	}
	return s, b.escape()
}

// ownSession returns a session of an agent.
func (b *batch) ownSession(agentID, id string) (batchSession, error) {
	s, err := b.anySession(id)
	if err == nil && s.row.AgentID != agentID {
		err = session.ErrNotFound
	}
	return s, err
}

func (b *batch) session(s batchSession, err error) (session.Session, error) {
	if err != nil {
		return session.Session{}, err
	}
	return fromSessionRow(&s.row)
}

func (b *batch) readSession(agentID, id string) (read ports.SessionRead, err error) {
	s, err := b.ownSession(agentID, id)
	if err != nil {
		return read, err
	}
	h, ok := b.health.get(id)
	if !ok {
		return read, b.escape()
	}
	if read.Session, err = fromSessionRow(&s.row); err != nil {
		return read, err
	}
	read.Usage, read.Health = fromUsageRow(s.usage), new(health.State)
	*read.Health, err = fromHealthBlob(h.state)
	return read, err
}

// workersOf returns the health of the workers of sessions.
func (b *batch) workersOf(ids []string) (map[string][]ports.WorkerHealth, error) {
	if b.workers == nil {
		return nil, b.escape()
	}
	found := map[string][]ports.WorkerHealth{}
	for _, id := range ids {
		if !b.whole[id] {
			return nil, b.escape()
		}
		if list := b.workers[id]; len(list) > 0 {
			found[id] = list
		}
	}
	return found, nil
}

// holdingOf returns the sessions of an agent that hold money.
func (b *batch) holdingOf(agentID string) ([]dueRow, error) {
	list, ok := b.holding[agentID]
	if !ok {
		return nil, b.escape()
	}
	return list, nil
}

func (b *batch) usage(id string) (traffic.Usage, error) {
	s, err := b.anySession(id)
	return fromUsageRow(s.usage), err
}

// settled returns a session whose settlement is read or planned, which needs its row.
func (b *batch) settled(id string) (batchSession, error) {
	s, err := b.anySession(id)
	if err == nil && !s.locked {
		err = b.escape()
	}
	return s, err
}

func (b *batch) setSettleAt(id string, at time.Time) error {
	s, err := b.settled(id)
	if err == nil {
		b.wrote = true
		s.settleAt, s.planned = column.Micros(at), true
		b.sessions.put(id, s)
	}
	return err
}

// insertSession lets the units after this one read the session, as those do that repeat its call. One
// that changes it goes alone.
func (b *batch) insertSession(s session.Session) {
	b.wrote = true
	row := toSessionRow(s)
	b.writes.own.inserted = append(b.writes.own.inserted, row)
	if _, twice := b.sessions.get(s.ID); !twice { // which the database refuses
		b.sessions.put(s.ID, batchSession{row: row, usage: usageRow{Bytes: row.Bytes}})
		b.health.put(s.ID, batchHealth{owner: row.AgentID, kind: row.Type, status: row.Status})
	}
}

func (b *batch) putSession(s session.Session) error {
	old, err := b.ownSession(s.AgentID, s.ID)
	if err != nil {
		return err
	}
	h, ok := b.health.get(s.ID)
	if !ok || !old.locked {
		return b.escape()
	}
	b.wrote = true
	old.row.sessionState, old.dirty = toSessionRow(s).sessionState, true
	b.sessions.put(s.ID, old)
	h.status = string(s.Status)
	b.health.put(s.ID, h)
	return nil
}

func (b *batch) healths(agentID string, ids []string) (map[string]ports.HealthRead, error) {
	found := make(map[string]ports.HealthRead, len(ids))
	for _, id := range ids {
		h, ok := b.health.get(id)
		switch {
		case !b.looked[id]:
			return nil, b.escape()
		case !ok || agentID != "" && h.owner != agentID:
			continue
		}
		state, err := fromHealthBlob(h.state)
		if err != nil {
			return nil, err
		}
		found[id] = ports.HealthRead{State: state, AgentID: h.owner, Type: session.Type(h.kind),
			Status: session.Status(h.status)}
	}
	return found, nil
}

func (b *batch) putHealth(id string, state []byte) error {
	h, ok := b.health.get(id)
	if !ok || !b.looked[id] {
		return b.escape()
	}
	b.wrote = true
	h.state, h.dirty = state, true
	b.health.put(id, h)
	return nil
}

func (b *batch) appendEvents(id string, added []eventlog.Event) error {
	h, ok := b.health.get(id)
	if !ok || !b.looked[id] {
		return b.escape()
	}
	b.wrote = true
	b.writes.own.append(h.seq, added)
	return nil
}
