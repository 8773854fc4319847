package postgres

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

func TestAPromotionThatLacksACommitIsLossy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]position{"0/0": 0, "16/B374D848": 0x16_B374_D848, "": 0, "x/1": 0, "1": 0} {
		if got := parsePosition(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
	for _, c := range []struct {
		last, took position
		want       int64
	}{
		{0, 100, 0}, // nothing was committed
		{100, 0, 0}, // not known
		{100, 101, 0},
		{100, 100, 1}, // a commit is beyond where its transaction found the end
		{100, 99, 1},
	} {
		s := &servers{log: slog.New(slog.DiscardHandler), system: "1", timeline: 1, last: c.last}
		if err := s.check("b:1", "1", 2, c.took); err != nil || s.lossy() != c.want {
			t.Errorf("%d after %d: %d lossy promotions, %v", c.took, c.last, s.lossy(), err)
		}
		if err := s.check("b:1", "1", 2, c.took); err != nil || s.lossy() != c.want {
			t.Errorf("the next connection: %d lossy promotions, %v", s.lossy(), err)
		}
	}
}

// A commit may be noted after another connection has seen the server that took it over.
func TestACommitThatIsNotedLateIsLostIfItWasNotTakenOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		timeline     int64
		before, took position
		want         int64
	}{
		{2, 100, 101, 0},
		{2, 100, 100, 1},
		{2, 100, 0, 1},   // it is not known what was taken over
		{1, 100, 101, 1}, // replaced twice
		{3, 100, 101, 0},
	} {
		s := &servers{log: slog.New(slog.DiscardHandler), system: "1", timeline: 2}
		if err := s.check("b:1", "1", 3, c.took); err != nil {
			t.Fatal(err)
		}
		if s.note(c.timeline, c.before); s.lossy() != c.want {
			t.Errorf("on timeline %d at %d, of which %d was taken over: %d lossy promotions", c.timeline, c.before, c.took, s.lossy())
		}
	}
}

// A process that has seen no server refuses one that was replaced while it did not run.
func TestAServerThatWasReplacedIsRefusedAfterAStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "seen")
	start := func() *servers {
		kept, err := readSeen(path)
		if err != nil {
			t.Fatal(err)
		}
		return &servers{log: slog.New(slog.DiscardHandler), seen: kept}
	}
	for i, c := range []struct {
		system   string
		timeline int64
		want     error
	}{
		{"1", 1, nil},
		{"1", 2, nil},
		{"1", 0, nil},
		{"1", 1, errReplaced},
		{"1", 2, nil},
		{"2", 1, nil}, // restored into another cluster
		{"1", 1, nil},
	} {
		if err := start().check("a:1", c.system, c.timeline, 0); !errors.Is(err, c.want) {
			t.Errorf("%d: %v, want %v", i, err, c.want)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readSeen(path); err == nil {
		t.Error("a damaged file is taken for none")
	}
}
