package storage_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/ports"
	"agentproxy/test/smalldisk"
)

func TestAFullDiskIsReadAndProbed(t *testing.T) {
	t.Parallel()
	disk := smalldisk.New(t, 4<<20)
	path := filepath.Join(disk.Dir, "full.db")
	open := func() *storage.Store {
		t.Helper()
		st, err := storage.Open(t.Context(), storage.Config{Path: path, Readers: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		if err := st.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		return st
	}
	first := open()
	addAgent(t, first, "agt_1", 0)
	if err := first.ProbeWrite(t.Context()); err != nil {
		t.Error(err)
	}
	if free, known, err := first.Free(); err != nil || !known || free == 0 || free > 4<<20 {
		t.Errorf("%d bytes are free, %v, %v", free, known, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	disk.Fill()
	if free, _, err := first.Free(); err != nil || free > 0 {
		t.Errorf("%d bytes are free, %v", free, err)
	}
	second := open()
	err := second.View(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Agents().Get(ctx, "agt_1")
		return err
	})
	if err != nil {
		t.Errorf("it is not read: %v", err)
	}
	disk.Fill()     // what was kept for the start
	for range 100 { // until what the log of writes had room for is full
		if err = second.ProbeWrite(t.Context()); err != nil {
			break
		}
	}
	if !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("writing is probed on a full disk: %v", err)
	}
	disk.Empty()
	if err := second.ProbeWrite(t.Context()); err != nil {
		t.Errorf("writing is probed once there is space: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	_ = open()
	if _, err := os.Stat(path + ".reserve"); err != nil {
		t.Errorf("no space is kept for the next start: %v", err)
	}
}
