package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

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
