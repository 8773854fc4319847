package postgres

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestOlderHistoriesAreRefused(t *testing.T) {
	t.Parallel()
	s := &servers{log: slog.New(slog.DiscardHandler)}
	for i, c := range []struct {
		name, system string
		timeline     int64
		want         error
		rises        int64
	}{
		{"a", "1", 3, nil, 0},
		{"b", "1", 0, nil, 0}, // a standby
		{"b", "1", 4, nil, 1}, // promoted
		{"a", "1", 3, errReplaced, 1},
		{"a", "1", 0, nil, 1}, // follows now
		{"c", "2", 9, errOtherCluster, 1},
		{"a", "1", 6, nil, 2},
	} {
		if err := s.check(c.name, c.system, c.timeline, 0); !errors.Is(err, c.want) || s.promotions() != c.rises {
			t.Errorf("%d: %v, %d promotions; want %v, %d", i, err, s.promotions(), c.want, c.rises)
		}
	}
}

func TestTheServerThatAnswersIsTriedFirst(t *testing.T) {
	t.Parallel()
	s := &servers{log: slog.New(slog.DiscardHandler)}
	order := func() (hosts string) {
		c := &pgconn.Config{Host: "a", Port: 1, Fallbacks: []*pgconn.FallbackConfig{{Host: "a", Port: 1}, {Host: "b", Port: 1}, {Host: "/c", Port: 1}}}
		s.order(c)
		hosts = c.Host
		for _, f := range c.Fallbacks {
			hosts += " " + f.Host
		}
		return hosts
	}
	if got := order(); got != "a a b /c" {
		t.Errorf("at first the order is %s", got)
	}
	if err := s.check("b:1", "1", 1, 0); err != nil || order() != "b a a /c" {
		t.Errorf("%v, after b answered the order is %s", err, order())
	}
	s.first, s.silentOne = "", "a:1"
	if got := order(); got != "b /c a a" {
		t.Errorf("while a does not answer the order is %s", got)
	}
	if err := s.check("a:1", "1", 1, 0); err != nil || order() != "a a b /c" {
		t.Errorf("%v, when it answers again the order is %s", err, order())
	}
}
