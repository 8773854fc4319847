package workers

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/sessions"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// The workers of a session that ended long ago are one row of session_archive in place of theirs. Reads
// take both: of a session that lives the archive is not looked up, because the key of the look-up is
// NULL. A unit that writes such a worker has read it before, and puts the rows back first.

const (
	// endedSeq is the number of the session s once it ended, NULL before.
	endedSeq = "CASE WHEN s.ended_at > 0 THEN s.seq END"

	// ofSession finds a session once for both parts of a statement.
	ofSession = "WITH found AS MATERIALIZED (SELECT s.seq, " + endedSeq + " AS ended FROM sessions s WHERE s.id = ?1) "

	fromArchive = " FROM session_archive a WHERE a.session = (SELECT ended FROM found)"
	// archivedHealth is the row of an archive behind those of workerHealth. The number of its worker is 0.
	archivedHealth = " UNION ALL SELECT 0, '', a.data" + fromArchive

	// archiveSchema is the oldest schema whose programs read archives.
	archiveSchema = 33
	// archiveFrom is the name under which the migration stored when the first archive may be made.
	archiveFrom = "archive-from"
)

// archived decodes an archive that was read in this unit.
func (r workers) archived(sessionID string, data []byte) ([]codec.Archived, error) {
	list, err := codec.DecodeArchive(data)
	for i := range list {
		list[i].SessionID = sessionID
		if r.In == nil {
			continue
		}
		if *r.packed == nil {
			*r.packed = Packed{}
		}
		(*r.packed)[list[i].ID] = sessionID
	}
	return list, err
}

// archivedAs returns the worker of a name in an archive, or sql.ErrNoRows.
func (r workers) archivedAs(sessionID, name string, data []byte) (worker.Worker, error) {
	list, err := r.archived(sessionID, data)
	if err != nil {
		return worker.Worker{}, err
	}
	if i := slices.IndexFunc(list, func(a codec.Archived) bool { return a.Name == name }); i >= 0 {
		return list[i].Worker, nil
	}
	return worker.Worker{}, sql.ErrNoRows
}

// archivedHealth returns the states of workers in an archive, by name; of all if no name is given.
func (r workers) archivedHealth(sessionID string, data []byte, names []string) (list []ports.WorkerHealth, err error) {
	all, err := r.archived(sessionID, data)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if len(names) > 0 && !slices.Contains(names, all[i].Name) {
			continue
		}
		h, err := healthOfArchived(&all[i])
		if err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	return list, nil
}

// healthInArchive returns the states of all workers in an archive by their numbers.
func healthInArchive(data []byte) ([]ports.WorkerHealth, error) {
	all, err := codec.DecodeArchive(data)
	list := make([]ports.WorkerHealth, len(all))
	for i := range all {
		if list[i], err = healthOfArchived(&all[i]); err != nil {
			break
		}
	}
	slices.SortFunc(list, func(a, b ports.WorkerHealth) int { return cmp.Compare(a.ID, b.ID) })
	return list, err
}

func healthOfArchived(a *codec.Archived) (h ports.WorkerHealth, err error) {
	h.ID, h.Name = a.ID, a.Name
	err = sessions.DecodeHealth(a.Health, &h.State)
	return h, err
}

// withWorkers walks over the sessions that have workers, in the order of their numbers, by the first entry of
// each in the index.
const withWorkers = `WITH RECURSIVE found (session, n) AS (
	SELECT (SELECT MIN(w.session) FROM workers w WHERE w.session > ?1), 1
	UNION ALL SELECT (SELECT MIN(w.session) FROM workers w WHERE w.session > c.session), c.n + 1
	FROM found c WHERE c.session IS NOT NULL AND c.n < ?2)
	SELECT s.id, s.seq, s.created_at, CASE WHEN ` + sessions.Ended + ` AND s.ended_at BETWEEN 1 AND ?3
	AND s.held_trial + s.held_own = 0 AND s.leased = 0 AND s.settle_at = 0 THEN 1 ELSE 0 END
	FROM found c JOIN sessions s ON s.seq = c.session ORDER BY s.seq`

func (r workers) ArchiveDue(
	ctx context.Context, now, endedBy time.Time, after int64, limit int,
) (due []string, last int64, err error) {
	var from []byte
	err = r.Row("SELECT value FROM service_values WHERE name = ?1", archiveFrom).Scan(&from)
	if err != nil {
		return nil, 0, fmt.Errorf("read when archives may be made: %w", err)
	}
	if at, err := strconv.ParseInt(string(from), 10, 64); err != nil || column.Micros(now) < at {
		return nil, 0, err
	}
	found, later, by := 0, false, column.Micros(endedBy)
	err = r.Rows(ctx, withWorkers, []any{after, limit, by}, func(row engine.Row) error {
		var id string
		var created, may int64
		err := row.Scan(&id, &last, &created, &may)
		found++
		later = later || created > by // and what is behind it was made later still
		if may != 0 {
			due = append(due, id)
		}
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list sessions to archive: %w", r.Failed(err))
	}
	if later || found < limit {
		last = 0
	}
	return due, last, nil
}

var liveWorkers = "SELECT " + workerColumns + `, h.state FROM workers w LEFT JOIN worker_health h ON h.worker = w.seq
	WHERE w.session = (SELECT seq FROM sessions WHERE id = ?1) ORDER BY w.name`

const (
	insertArchive = `INSERT INTO session_archive (session, at, workers, up, down, connections, data)
		SELECT seq, ?2, ?3, ?4, ?5, ?6, ?7 FROM sessions WHERE id = ?1`
	takeArchive = `DELETE FROM session_archive WHERE session = (SELECT seq FROM sessions WHERE id = ?1)
		RETURNING data`
	restoreWorker = "INSERT INTO workers (session, seq, name, created_at, " + workerStateColumns +
		`, error_at, error_code, up, down, connections, used_at) SELECT s.seq, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
		?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22 FROM sessions s WHERE s.id = ?1`
)

func (r workers) Archive(ctx context.Context, sessionID string, now time.Time) error {
	var list []codec.Archived
	var sum worker.Usage
	err := r.Rows(ctx, liveWorkers, []any{sessionID}, func(row engine.Row) error {
		w, state, err := scanWorker("", row)
		list = append(list, codec.Archived{Worker: w, Health: state})
		sum.Up, sum.Down, sum.Connections = sum.Up+w.Usage.Up, sum.Down+w.Usage.Down, sum.Connections+w.Usage.Connections
		return err
	})
	if err != nil {
		return fmt.Errorf("read the workers of %s to archive them: %w", sessionID, r.Failed(err))
	}
	if len(list) == 0 {
		return nil
	}
	for _, do := range []struct {
		what, statement string
		args            []any
	}{
		{"archive workers", insertArchive, []any{sessionID, column.Micros(now), len(list), sum.Up, sum.Down, sum.Connections,
			codec.AppendArchive(nil, list)}},
		{"drop the health of archived workers", `DELETE FROM worker_health WHERE worker IN (SELECT w.seq FROM workers w
			WHERE w.session = (SELECT seq FROM sessions WHERE id = ?1))`, []any{sessionID}},
		{"drop archived workers", "DELETE FROM workers WHERE session = (SELECT seq FROM sessions WHERE id = ?1)",
			[]any{sessionID}},
		{"exclude programs that read no archive",
			"UPDATE schema_state SET min_compatible = ?1 WHERE min_compatible < ?1", []any{archiveSchema}},
	} {
		if err := r.Later(do.what+" of "+sessionID, do.statement, do.args...); err != nil {
			return err
		}
	}
	return nil
}

// restore puts back the rows of the archive in which this unit has read a worker, if it is one.
func (r workers) restore(ctx context.Context, id int64) error {
	sessionID, packed := (*r.packed)[id]
	if !packed {
		return nil
	}
	var data []byte
	err := r.Returning(takeArchive, []any{sessionID}, &data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // put back for another worker
	}
	if err != nil {
		return fmt.Errorf("take the workers of %s out of the archive: %w", sessionID, err)
	}
	list, err := codec.DecodeArchive(data)
	if err != nil {
		return fmt.Errorf("the workers of %s: %w", sessionID, err)
	}
	for i := range list {
		a := &list[i]
		args := append([]any{sessionID, a.ID, a.Name, column.Micros(a.CreatedAt)}, stateValues(a.Worker)...)
		args = append(args, column.Micros(a.LastError.At), a.LastError.Code, a.Usage.Up, a.Usage.Down, a.Usage.Connections,
			column.Micros(a.LastUsedAt))
		err := r.Later("put back a worker of "+sessionID, restoreWorker, args...)
		if err == nil && len(a.Health) > 0 {
			err = r.Later("put back the health of a worker", "INSERT INTO worker_health (worker, state) VALUES (?1, ?2)",
				a.ID, a.Health)
		}
		if err != nil {
			return err
		}
		delete(*r.packed, a.ID)
	}
	return nil
}
