package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// positionNow is the expression for where the log of a server that takes writes ends.
const positionNow = "pg_current_wal_insert_lsn()::text"

// position is a place in the log of a server, which commits are written to in their order. A commit whose
// transaction read it before is beyond it.
type position uint64

// parsePosition reads a pg_lsn, such as 16/B374D848; 0 for none.
func parsePosition(text string) position {
	high, low, _ := strings.Cut(text, "/")
	h, errHigh := strconv.ParseUint(high, 16, 32)
	l, errLow := strconv.ParseUint(low, 16, 32)
	if errHigh != nil || errLow != nil {
		return 0
	}
	return position(h<<32 | l)
}

// timelineOf is the key of the timeline of a connection's server when it was opened.
const timelineOf = "agentproxy.timeline"

// committed notes a commit that was answered, and where the log ended just before it. One by a server that
// was replaced meanwhile is lost, unless the server that was promoted next took it over: it may be noted late. One
// that wrote nothing waits for no standby, and cannot be lost.
func (s *servers) committed(conn *pgconn.PgConn, before position, wrote bool) {
	timeline, _ := conn.CustomData()[timelineOf].(int64)
	if wrote {
		s.note(timeline, before)
	}
}

// changes reports whether a statement may change rows.
func changes(statement string) bool {
	verb, _, _ := strings.Cut(statement, " ")
	return verb != "SELECT" && verb != "BEGIN" && verb != "COMMIT"
}

func (s *servers) note(timeline int64, before position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case timeline == 0 || before == 0:
	case timeline == s.before && before < s.took:
	case timeline < s.timeline:
		s.lose("position", before, "timeline", timeline)
	default:
		s.last = max(s.last, before)
	}
}

// promoted compares the log that a server took over when it was promoted with the last commit of this process. It
// is called under mu. A server that was started again since does not have what it took over, which is 0 then.
func (s *servers) promoted(took position) {
	switch last := s.last; {
	case last == 0:
	case took == 0:
		s.log.Warn("it is not known whether the promoted database server has all commits", "last", last)
	case took <= last:
		s.lose("last", last, "taken_over", took)
	}
	s.last = 0
}

// lose notes that commits are lost. It is called under mu. They are logged once a timeline.
func (s *servers) lose(details ...any) {
	if s.lostOn == s.timeline {
		return
	}
	s.lostOn, s.losses = s.timeline, s.losses+1
	s.log.Error("a failover of the database lost commits that had been acknowledged; compare with the sellers by "+
		"agentproxy orders reconcile", details...)
}

// lossy returns how many promotions lost commits of this process.
func (s *servers) lossy() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.losses
}

// seen is the newest timeline that processes of this host have seen, in a file. It is none of the database's
// tables: on a server that was replaced they are as they were before.
type seen struct {
	path     string // empty: nothing is kept
	System   string `json:"system"`
	Timeline int64  `json:"timeline"`
}

// readSeen reads what is kept in a file, which need not exist.
func readSeen(path string) (s seen, err error) {
	if path == "" {
		return s, nil
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("read which database server was seen last: %w", err)
	}
	s.path = path
	return s, nil
}

// replaced reports whether a server of the same cluster with a newer timeline was seen. A database that was
// restored into another cluster is none of them.
func (s *seen) replaced(system string, timeline int64) bool {
	return system == s.System && timeline < s.Timeline
}

// keep writes what is seen now to the disk.
func (s *seen) keep(system string, timeline int64) error {
	if s.path == "" || system == s.System && timeline == s.Timeline {
		return nil
	}
	s.System, s.Timeline = system, timeline
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), filepath.Base(s.path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it is renamed
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), s.path)
}
