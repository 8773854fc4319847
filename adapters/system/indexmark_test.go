package system_test

import (
	"os"
	"path/filepath"
	"testing"

	"agentproxy/adapters/system"
)

func TestTheMarkOfIndexesNeverGoesBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db.indexes")
	m := system.NewIndexMark(path)
	if next, kept, err := m.Next("a"); next != 0 || kept || err != nil {
		t.Errorf("without a file it has %d, %v, %v", next, kept, err)
	}
	for _, next := range []uint32{7, 3, 9} {
		if err := m.Raise("a", next); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Raise("b", 2); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]uint32{"a": 9, "b": 2} {
		if next, kept, err := system.NewIndexMark(path).Next(key); next != want || !kept || err != nil {
			t.Errorf("of %s it has %d, %v, %v; want %d", key, next, kept, err, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	if err := os.WriteFile(path, []byte("a nine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Next("a"); err == nil {
		t.Error("a damaged file was read")
	}
	if err := m.Raise("a", 10); err == nil {
		t.Error("a damaged file was replaced")
	}
}
