package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentproxy/adapters/storage"
)

// TestRestore puts a copy in the place of the database, and leaves out the indexes of addresses that may have been given out.
func TestRestore(t *testing.T) {
	configure(t, "")
	t.Setenv("AGENTPROXY_DATABASE_URL", "sqlite://service.db")
	done(t, "migrate")
	done(t, "agent", "add", "--name", "before", "--reason", "a partner")
	done(t, "backup", "copy.db")
	done(t, "agent", "add", "--name", "since", "--reason", "a partner")
	agents := func() int { return len(rows(t, done(t, "agent", "list"))) }
	if n := agents(); n != 2 {
		t.Fatalf("there are %d agents", n)
	}
	if err := os.WriteFile("damaged.db", []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	open, err := storage.Open(t.Context(), storage.Config{Path: "service.db"})
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"no file": "none.db", "a damaged file": "damaged.db", "a running service": "copy.db"} {
		if status, out, errOut := command("restore", file); status != 1 {
			t.Errorf("%s: %d %s%s", name, status, out, errOut)
		}
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	if n := agents(); n != 2 {
		t.Errorf("after what was refused there are %d agents", n)
	}
	for i, want := range []float64{10_001, 20_001} {
		file := []string{"copy.db"}[:1-i] // the second time without one
		got := object(t, done(t, append([]string{"restore", "--reason", "the disk"}, file...)...))
		if got["next_index"] != want {
			t.Errorf("the next index is %v, want %v", got["next_index"], want)
		}
	}
	if n := agents(); n != 1 {
		t.Errorf("the copy has %d agents, want 1", n)
	}
	aside, err := filepath.Glob("service.db.before-*")
	if err != nil || len(aside) != 1 {
		t.Errorf("the database before is %v, %v", aside, err)
	}
	done(t, "verify")
	if open, err = storage.Open(t.Context(), storage.Config{Path: "service.db"}); err != nil {
		t.Fatal(err)
	}
	var raised int64 // behind what agents may have read of events
	err = open.Writer().QueryRow("SELECT MAX(seq) FROM outbox").Scan(&raised)
	if err = errors.Join(err, open.Close()); err != nil || raised != 2<<32 {
		t.Errorf("events go on behind number %d: %v", raised, err)
	}
	if list := did(t); len(list) == 0 || !strings.Contains(list[0], "|restore||the disk") {
		t.Errorf("kept is %v", list)
	}
}
