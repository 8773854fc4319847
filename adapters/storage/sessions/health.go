package sessions

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// healths keeps the health state of sessions.
type healths struct{ *work.Unit }

// Health returns the health of sessions in a unit.
func Health(u *work.Unit) ports.Health { return healths{u} }

func (r healths) Get(ctx context.Context, agentID string, ids []string) (map[string]*ports.HealthRead, error) {
	if err := look(ctx, r.Unit, ids); err != nil {
		return nil, err
	}
	found := make(map[string]*ports.HealthRead, len(ids))
	for _, id := range ids {
		h, ok := HealthTable.Peek(r.Set, id)
		if !ok || agentID != "" && h.owner != agentID {
			continue
		}
		read := &ports.HealthRead{AgentID: h.owner, Type: session.Type(h.kind), Status: session.Status(h.status)}
		if err := DecodeHealth(h.State, &read.State); err != nil {
			return nil, fmt.Errorf("read health of %s: %w", id, err)
		}
		found[id] = read
	}
	return found, nil
}

// look loads the health of sessions that is not in memory.
func look(ctx context.Context, u *work.Unit, ids []string) error {
	missing, err := HealthTable.Missing(u.Set, ids)
	for len(missing) > 0 && err == nil {
		part := missing[:min(len(missing), work.MaxIn)]
		missing = missing[len(part):]
		if Table.Dirty(u.Set, part...) {
			err = u.Set.Flush()
		}
		if err != nil {
			break
		}
		u.Hold(part...)
		HealthTable.Ask(u.Set, part...)
		list, args := work.InTexts(part)
		query := selectHealthAlone
		if u.Conn.Arrays() {
			query = selectHealth
		}
		err = u.Conn.Rows(u.ListContext(ctx), query+"IN "+list, args, func(row engine.Row) error {
			id, h, err := scanHealth(row)
			HealthTable.Load(u.Set, id, h)
			return err
		})
	}
	return work.Wrap("read health", err)
}

// looked returns the health of a session for a change.
func looked(ctx context.Context, u *work.Unit, id string) (h StoredHealth, err error) {
	if err := look(ctx, u, []string{id}); err != nil {
		return h, err
	}
	h, found := HealthTable.Peek(u.Set, id)
	switch {
	case !found:
		return h, session.ErrNotFound
	case !h.locked:
		return h, u.Set.Escape()
	}
	return h, nil
}

func (r healths) Put(ctx context.Context, id string, s health.State) error {
	blob, err := s.MarshalBinary()
	if err != nil {
		return fmt.Errorf("encode health of %s: %w", id, err)
	}
	h, err := looked(ctx, r.Unit, id)
	if err != nil {
		return err
	}
	if !r.Set.Shared() { // what a batch writes replaces what is in memory for views
		r.Touch(id)
	}
	h.State = blob
	return HealthTable.Put(r.Set, id, h)
}

// StoredHealth is a row of the health of a session, or its absence.
type StoredHealth struct {
	seq                 int64
	lastNo              int64 // of its last event; 0 if it is not known
	owner, kind, status string
	State               []byte // as it is stored, empty for a session without reports
	stored              bool   // the table has it
	locked              bool
}

// healthRow is a row of session_health.
type healthRow struct {
	Session int64
	State   []byte
}

// numberedHealth is one with the number of the last event, which PostgreSQL keeps; 0 if it is not known.
type numberedHealth struct {
	healthRow
	LastNo int64
}

const (
	selectHealthAlone = "SELECT s.id, s.seq, s.agent_id, s.type, s.status, h.state, 0" + withHealth + "WHERE s.id "
	// selectHealth reads them on PostgreSQL; the sessions follow it.
	selectHealth = "SELECT s.id, s.seq, s.agent_id, s.type, s.status, h.state, COALESCE(h.last_no, 0)" +
		withHealth + "WHERE s.id "
)

var (
	// putHealths writes the health that was read, since ON CONFLICT would lock each row by a write of its own.
	putHealths   = rows.Update[healthRow]("write health", "session_health", 1)
	numberedRows = rows.ColumnsOf[numberedHealth]()
	putNumbered  = rows.NewStatement[numberedHealth]("write health", numberedRows,
		"UPDATE session_health SET state = ?2, last_no = NULLIF(?3, 0) WHERE session = ?1",
		"UPDATE session_health h SET state = u.state, last_no = NULLIF(u.last_no, 0) FROM "+numberedRows.From()+
			" WHERE h.session = u.session")
	addHealths = rows.Upsert[healthRow]("add health", "session_health", 1)
)

// HealthTable has the health of sessions. All of it is read by look, or ahead.
var HealthTable = &rows.Table[string, StoredHealth]{
	Order:   work.HealthOrder,
	Compare: strings.Compare,
	Keep:    true,
	Written: func(h StoredHealth) StoredHealth { h.stored = true; return h },
	Ahead: rows.Ahead[string, StoredHealth]{
		What: "read health", Lock: "SELECT 1 FROM sessions WHERE id = ANY(?1::text[]) ORDER BY id FOR " + work.RowLock,
		Query: selectHealth + "= ANY(?1::text[])", Scan: scanHealth,
	},
	Write: func(_ *rows.Set, to rows.Writer, changed []rows.Change[string, StoredHealth]) error {
		var put, added []healthRow
		var numbered []numberedHealth
		for _, c := range changed {
			row := healthRow{c.Row.seq, c.Row.State}
			switch {
			case !c.Row.stored:
				added = append(added, row)
			case to.Arrays():
				numbered = append(numbered, numberedHealth{row, c.Row.lastNo})
			default:
				put = append(put, row)
			}
		}
		return cmp.Or(putNumbered.Write(to, numbered), putHealths.Write(to, put), addHealths.Write(to, added))
	},
}

// scanHealth scans a row of selectHealth.
func scanHealth(row engine.Row) (id string, h StoredHealth, err error) {
	h.locked = true
	err = row.Scan(&id, &h.seq, &h.owner, &h.kind, &h.status, &h.State, &h.lastNo)
	h.stored = h.State != nil
	return id, h, err
}
