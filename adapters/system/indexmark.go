package system

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentproxy/ports"
)

// IndexMark is a file with a line "key index" for each account key. It lies beside the database, and no backup of
// the database has it.
type IndexMark struct {
	path string
	mu   sync.Mutex
}

var _ ports.IndexMark = (*IndexMark)(nil)

// NewIndexMark returns the mark in a file, which need not exist.
func NewIndexMark(path string) *IndexMark { return &IndexMark{path: path} }

// Next reads the file each time: a command of the operator may have written it.
func (m *IndexMark) Next(fingerprint string) (next uint32, kept bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, err := m.read()
	next, kept = all[fingerprint]
	return next, kept, err
}

// Raise writes a new file, and puts it in the place of the old one.
func (m *IndexMark) Raise(fingerprint string, next uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, err := m.read()
	if err != nil || next <= all[fingerprint] {
		return err
	}
	all[fingerprint] = next
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s %d\n", key, all[key])
	}
	f, err := os.CreateTemp(filepath.Dir(m.path), ".indexes-*") // mode 0600
	if err != nil {
		return fmt.Errorf("keep the indexes of payment addresses: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text.String())
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), m.path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(m.path))
	}
	if err != nil {
		return fmt.Errorf("keep the indexes of payment addresses: %w", err)
	}
	return nil
}

func (m *IndexMark) read() (map[string]uint32, error) {
	all := map[string]uint32{}
	text, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the indexes of payment addresses: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		key, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		next, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: the line %q is not a key and an index; agentproxy restore writes it anew once the file "+
				"is removed", m.path, strings.TrimSpace(line))
		}
		all[key] = uint32(next)
	}
	return all, nil
}
