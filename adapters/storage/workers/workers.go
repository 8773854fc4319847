// Package workers keeps the workers of sessions, and the archives of those of sessions that ended long ago.
package workers

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/sessions"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// workers keeps the workers of sessions.
type workers struct {
	*work.Unit
	packed *Packed
}

// Packed are the workers that a unit which writes has read in archives, with their sessions.
type Packed map[int64]string

// Workers returns the workers of a unit, which keeps packed.
func Workers(u *work.Unit, packed *Packed) ports.Workers { return workers{u, packed} }

const (
	// workerStateColumns are what Insert and Put write.
	workerStateColumns = "country, city, ttl, strict, uniq, max_bytes, exit_ip, turn, assigned_at, lost, " +
		"changeable, rotations"

	insertWorker = "INSERT INTO workers (session, name, created_at, " + workerStateColumns + `)
		SELECT s.seq, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15 FROM sessions s WHERE s.id = ?1
		AND NOT EXISTS (SELECT 1 FROM session_archive a WHERE a.session = ` + endedSeq + `)
		RETURNING seq`
	putWorker = "UPDATE workers SET (" + workerStateColumns + `) =
		(?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) WHERE seq = ?1`
	countWorker = `UPDATE workers SET up = up + ?2, down = down + ?3, connections = connections + ?4, used_at = ?5
		WHERE seq = ?1`
	workerHealth = ofSession + `SELECT w.seq, w.name, h.state FROM workers w
		LEFT JOIN worker_health h ON h.worker = w.seq WHERE w.session = (SELECT seq FROM found)`
	// SelectHealth has one row of an archived session, whose number is 0 and whose state is the archive.
	SelectHealth = `SELECT s.id, COALESCE(w.seq, 0), COALESCE(w.name, ''), COALESCE(h.state, a.data) FROM sessions s
		LEFT JOIN workers w ON w.session = s.seq LEFT JOIN worker_health h ON h.worker = w.seq
		LEFT JOIN session_archive a ON a.session = ` + endedSeq + `
		WHERE COALESCE(w.seq, a.session) > 0 AND s.id `
	// putWorkerHealth finds the worker too: one that was removed keeps no state.
	putWorkerHealth = `INSERT INTO worker_health (worker, state) SELECT seq, ?2 FROM workers WHERE seq = ?1
		ON CONFLICT (worker) DO UPDATE SET state = excluded.state`
)

// workerFields are what is read of a worker, and what the row of an archive has in its place: its number is 0.
var workerFields = []struct{ name, archived string }{
	{"w.seq", "0"}, {"w.name", "''"}, {"w.created_at", "0"}, {"country", "''"}, {"city", "''"}, {"ttl", "0"},
	{"strict", "0"}, {"uniq", "0"}, {"max_bytes", "0"}, {"exit_ip", "''"}, {"turn", "0"}, {"assigned_at", "0"},
	{"lost", "0"}, {"changeable", "0"}, {"rotations", "0"}, {"error_at", "0"}, {"error_code", "''"}, {"w.up", "0"},
	{"w.down", "0"}, {"w.connections", "0"}, {"used_at", "0"},
}

var (
	workerColumns, archivedColumns = joinFields()

	selectWorkers = ofSession + "SELECT " + workerColumns + `, NULL AS data
		FROM workers w WHERE w.session = (SELECT seq FROM found)`
	// archivedWorkers is the row of an archive behind those of selectWorkers.
	archivedWorkers = " UNION ALL SELECT " + archivedColumns + ", a.data" + fromArchive
)

func joinFields() (names, archived string) {
	var n, a []string
	for _, f := range workerFields {
		n, a = append(n, f.name), append(a, f.archived)
	}
	return strings.Join(n, ", "), strings.Join(a, ", ")
}

// stateValues returns the values of workerStateColumns.
func stateValues(w worker.Worker) []any {
	exit := ""
	if w.Exit.IP.IsValid() {
		exit = w.Exit.IP.String()
	}
	return []any{w.Location.Country, w.Location.City, w.TTL.Microseconds(), column.Flag(w.Strict),
		column.Flag(w.Unique), w.MaxBytes,
		exit, w.Turn, column.Micros(w.AssignedAt), column.Flag(w.Lost), column.Flag(w.Changeable), w.Rotations}
}

func (r workers) Of(ctx context.Context, sessionID string) (list []worker.Worker, err error) {
	err = r.Rows(ctx, selectWorkers+archivedWorkers+" ORDER BY 2", []any{sessionID}, func(row engine.Row) error {
		w, archive, err := scanWorker(sessionID, row)
		if err != nil || archive == nil {
			list = append(list, w)
			return err
		}
		archived, err := r.archived(sessionID, archive)
		for i := range archived {
			list = append(list, archived[i].Worker)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list workers of %s: %w", sessionID, r.Failed(err))
	}
	return list, nil
}

func (r workers) Get(_ context.Context, sessionID, name string) (worker.Worker, error) {
	w, archive, err := scanWorker(sessionID, r.Row(selectWorkers+" AND w.name = ?2"+archivedWorkers, sessionID, name))
	if err == nil && archive != nil {
		w, err = r.archivedAs(sessionID, name, archive)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return worker.Worker{}, worker.ErrNotFound
	}
	if err != nil {
		return worker.Worker{}, fmt.Errorf("read worker %s of %s: %w", name, sessionID, err)
	}
	return w, nil
}

// scanWorker scans workerColumns and the column of bytes behind them, which is nil for NULL.
func scanWorker(sessionID string, found engine.Row) (w worker.Worker, more []byte, err error) {
	w.SessionID = sessionID
	var createdAt, ttl, strict, uniq, assignedAt, lost, changeable, errorAt, usedAt int64
	var exit string
	err = found.Scan(&w.ID, &w.Name, &createdAt, &w.Location.Country, &w.Location.City, &ttl, &strict, &uniq, &w.MaxBytes,
		&exit, &w.Turn, &assignedAt, &lost, &changeable, &w.Rotations, &errorAt, &w.LastError.Code, &w.Usage.Up,
		&w.Usage.Down, &w.Usage.Connections, &usedAt, &more)
	if err != nil {
		return w, nil, err
	}
	if exit != "" {
		if w.Exit.IP, err = netip.ParseAddr(exit); err != nil {
			return w, nil, fmt.Errorf("exit of worker %d: %w", w.ID, err)
		}
	}
	w.TTL, w.Strict, w.Unique = time.Duration(ttl)*time.Microsecond, strict != 0, uniq != 0
	w.Lost, w.Changeable = lost != 0, changeable != 0
	w.CreatedAt, w.AssignedAt, w.LastUsedAt = column.Time(createdAt), column.Time(assignedAt), column.Time(usedAt)
	w.LastError.At = column.Time(errorAt)
	return w, more, nil
}

func (r workers) Insert(_ context.Context, w worker.Worker) (id int64, err error) {
	r.Touch(w.SessionID)
	args := append([]any{w.SessionID, w.Name, column.Micros(w.CreatedAt)}, stateValues(w)...)
	err = r.Returning(insertWorker, args, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, session.ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("insert worker %s of %s: %w", w.Name, w.SessionID, err)
	}
	return id, nil
}

func (r workers) Put(ctx context.Context, w worker.Worker) error {
	if err := r.restore(ctx, w.ID); err != nil {
		return err
	}
	n, err := r.Exec(putWorker, append([]any{w.ID}, stateValues(w)...)...)
	if err != nil {
		return fmt.Errorf("write worker %d: %w", w.ID, err)
	}
	if n == 0 {
		return worker.ErrNotFound
	}
	return nil
}

func (r workers) Changed(_ context.Context, sessionID string) error {
	return r.NoteChange("", sessionID)
}

func (r workers) Rotated(_ context.Context, sessionID string) error {
	r.Touch(sessionID)
	return r.Later("count a rotation of a worker",
		"UPDATE sessions SET worker_rotations = worker_rotations + 1 WHERE id = ?1", sessionID)
}

func (r workers) Delete(ctx context.Context, id int64) error {
	if err := r.restore(ctx, id); err != nil {
		return err
	}
	if err := r.Later("drop the health of a worker", "DELETE FROM worker_health WHERE worker = ?1", id); err != nil {
		return err
	}
	return r.Later("drop a worker", "DELETE FROM workers WHERE seq = ?1", id)
}

func (r workers) Count(ctx context.Context, id int64, more worker.Usage, at time.Time) error {
	if err := r.restore(ctx, id); err != nil {
		return err
	}
	return r.Later("count the usage of a worker", countWorker, id, more.Up, more.Down, more.Connections, column.Micros(at))
}

func (r workers) Bytes(ctx context.Context, ids []int64) (map[int64]int64, error) {
	found := make(map[int64]int64, len(ids))
	for len(ids) > 0 {
		part := ids[:min(len(ids), work.MaxIn)]
		ids = ids[len(part):]
		list, size := work.In(1, len(part))
		args := make([]any, 0, size)
		for i := range size {
			args = append(args, part[min(i, len(part)-1)])
		}
		err := r.Rows(ctx, "SELECT seq, up + down FROM workers WHERE seq IN "+list, args, func(row engine.Row) error {
			var id, bytes int64
			err := row.Scan(&id, &bytes)
			found[id] = bytes
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the bytes of workers: %w", r.Failed(err))
		}
	}
	return found, nil
}

func (r workers) Health(ctx context.Context, sessionID string, names ...string) (list []ports.WorkerHealth, err error) {
	query, args := workerHealth, []any{sessionID}
	if len(names) > 0 {
		var marks []string
		for _, name := range names {
			args = append(args, name)
			marks = append(marks, fmt.Sprintf("?%d", len(args)))
		}
		query += " AND w.name IN (" + strings.Join(marks, ", ") + ")"
	}
	err = r.Rows(ctx, query+archivedHealth+" ORDER BY 2", args, func(row engine.Row) error {
		var h ports.WorkerHealth
		var blob []byte
		err := row.Scan(&h.ID, &h.Name, &blob)
		if err != nil {
			return err
		}
		if h.ID == 0 {
			list, err = r.archivedHealth(sessionID, blob, names)
			return err
		}
		err = sessions.DecodeHealth(blob, &h.State)
		list = append(list, h)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the health of workers of %s: %w", sessionID, r.Failed(err))
	}
	return list, nil
}

func (r workers) HealthOf(ctx context.Context, sessionIDs []string) (map[string][]ports.WorkerHealth, error) {
	missing, err := HealthTable.Missing(r.Set, sessionIDs)
	if err != nil {
		return nil, err
	}
	var found map[string][]ports.WorkerHealth // most sessions have no workers
	put := func(id string, list []ports.WorkerHealth) {
		if found == nil {
			found = map[string][]ports.WorkerHealth{}
		}
		found[id] = list
	}
	for _, id := range sessionIDs {
		if list, _ := HealthTable.Peek(r.Set, id); len(list) > 0 {
			put(id, list)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	list, args := work.InTexts(missing)
	err = r.Rows(ctx, SelectHealth+"IN "+list+" ORDER BY w.seq", args, scanWorkerHealth(
		func(id string, h ...ports.WorkerHealth) { put(id, append(found[id], h...)) }))
	if err != nil {
		return nil, fmt.Errorf("read the health of the workers of %d sessions: %w", len(sessionIDs), r.Failed(err))
	}
	return found, nil
}

// HealthTable has the health of the workers of sessions, which views read ahead.
var HealthTable = &rows.Table[string, []ports.WorkerHealth]{Order: work.WorkerOrder}

// LoadHealth loads rows of SelectHealth.
func LoadHealth(s *rows.Set) func(engine.Row) error {
	return scanWorkerHealth(func(id string, more ...ports.WorkerHealth) {
		list, _ := HealthTable.Peek(s, id)
		HealthTable.Load(s, id, append(list, more...))
	})
}

// scanWorkerHealth scans rows of SelectHealth.
func scanWorkerHealth(add func(sessionID string, h ...ports.WorkerHealth)) func(engine.Row) error {
	return func(row engine.Row) error {
		var session string
		var h ports.WorkerHealth
		var blob []byte
		err := row.Scan(&session, &h.ID, &h.Name, &blob)
		if err != nil {
			return err
		}
		if h.ID == 0 {
			list, err := healthInArchive(blob)
			add(session, list...)
			return err
		}
		err = sessions.DecodeHealth(blob, &h.State)
		add(session, h)
		return err
	}
}

func (r workers) PutHealth(ctx context.Context, id int64, s health.State, failed worker.Failure) error {
	if err := r.restore(ctx, id); err != nil {
		return err
	}
	blob, err := s.MarshalBinary()
	if err != nil {
		return fmt.Errorf("encode the health of worker %d: %w", id, err)
	}
	if err := r.Later("write the health of a worker", putWorkerHealth, id, blob); err != nil || failed.At.IsZero() {
		return err
	}
	return r.Later("write the failure of a worker", "UPDATE workers SET error_at = ?2, error_code = ?3 WHERE seq = ?1",
		id, column.Micros(failed.At), failed.Code)
}

// workerNames reads what decides which workers of a session are on a page: no database orders names as people count.
const workerNames = ofSession + `SELECT w.seq, w.name, w.max_bytes, w.up + w.down, w.lost, NULL AS data
	FROM workers w WHERE w.session = (SELECT seq FROM found) UNION ALL SELECT 0, '', 0, 0, 0, a.data` + fromArchive

func (r workers) Page(
	ctx context.Context, sessionID string, of worker.Status, page domain.Page,
) (domain.List[worker.Worker], error) {
	var found []worker.Worker
	archived := false
	add := func(w worker.Worker) {
		if of == "" || w.Status() == of {
			found = append(found, w)
		}
	}
	err := r.Rows(ctx, workerNames, []any{sessionID}, func(row engine.Row) error {
		var w worker.Worker
		var lost int64
		var archive []byte
		err := row.Scan(&w.ID, &w.Name, &w.MaxBytes, &w.Usage.Down, &lost, &archive)
		if err != nil || archive == nil {
			w.Lost = lost != 0
			add(w)
			return err
		}
		archived = true
		list, err := r.archived(sessionID, archive)
		for i := range list {
			add(list[i].Worker)
		}
		return err
	})
	if err != nil {
		return domain.List[worker.Worker]{}, fmt.Errorf("list the names of workers of %s: %w", sessionID, r.Failed(err))
	}
	slices.SortFunc(found, func(a, b worker.Worker) int {
		return cmp.Or(worker.CompareNames(a.Name, b.Name), cmp.Compare(a.Name, b.Name))
	})
	list := domain.List[worker.Worker]{Page: page, Total: len(found)}
	from := min(page.Offset(), len(found))
	list.Items = found[from:min(from+page.Size, len(found))]
	if !archived {
		err = r.readWhole(ctx, sessionID, list.Items)
	}
	return list, err
}

// readWhole reads workers of which the names are known.
func (r workers) readWhole(ctx context.Context, sessionID string, list []worker.Worker) error {
	if len(list) == 0 {
		return nil
	}
	places := make(map[int64]int, len(list))
	ids := make([]any, len(list))
	for i, w := range list {
		places[w.ID], ids[i] = i, w.ID
	}
	in, size := work.In(2, len(ids))
	for len(ids) < size {
		ids = append(ids, ids[len(ids)-1])
	}
	err := r.Rows(ctx, selectWorkers+" AND w.seq IN "+in, append([]any{sessionID}, ids...), func(row engine.Row) error {
		w, _, err := scanWorker(sessionID, row)
		list[places[w.ID]] = w
		return err
	})
	if err != nil {
		return fmt.Errorf("list workers of %s: %w", sessionID, r.Failed(err))
	}
	return nil
}
