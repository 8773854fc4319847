package e2e_test

import (
	"database/sql"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An exit's address, its port and a time name the agent, while the tunnel is open and after a
// kill; the look-up is kept.
func TestWhoUsedAnExitIsFound(t *testing.T) {
	t.Parallel()
	s := serve(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seen := make(chan *net.TCPAddr, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			seen <- c.RemoteAddr().(*net.TCPAddr)
			t.Cleanup(func() { c.Close() })
		}
	}()
	type used struct {
		agent, session string
		exit           *net.TCPAddr
	}
	var all []used
	for n := range 4 {
		key, _ := s.register(fmt.Sprint("agent ", n))
		id := s.dynamic(key, "1")
		tunnel(t, s.proxyAt(key, id), l.Addr().String())
		all = append(all, used{s.agentOf(key), id, <-seen})
	}
	at := time.Now().UTC().Format(time.RFC3339Nano)
	lookup := func(exit *net.TCPAddr, more ...string) (string, error) {
		return s.run(append([]string{"--json", "exits", "lookup", "--exit-ip", exit.IP.String(), "--exit-port", fmt.Sprint(exit.Port),
			"--at", at, "--reason", "a complaint"}, more...)...)
	}
	// A gateway that is killed may lose what it noted in the last second.
	s.promised(time.Second, "the exits are in the log", func() bool { return s.logged() >= len(all) })
	s.kill()
	for _, u := range all {
		out, err := lookup(u.exit)
		if err != nil || strings.Count(out, `"agent_id"`) != 1 || !strings.Contains(out, `"`+u.agent+`"`) || !strings.Contains(out, `"`+u.session+`"`) {
			t.Errorf("look-up of %s: %v\n%s", u.exit, err, out)
		}
	}
	if out, err := lookup(all[0].exit, "--target", "shop.example"); exit(err) != 1 || !strings.Contains(out, "NOBODY_FOUND") {
		t.Errorf("of another target: %v\n%s", err, out)
	}
	out, err := s.run("--json", "exits", "lookups")
	if err != nil || strings.Count(out, `"a complaint"`) != 5 || strings.Count(out, `"found": 1`) != 4 {
		t.Errorf("the look-ups: %v\n%s", err, out)
	}
	hold := s.object("exits", "hold", "--from", "2026-01-01", "--to", "2026-01-02")
	if out, err = s.run("exits", "holds"); err != nil || !strings.Contains(out, fmt.Sprint(hold["id"])) {
		t.Errorf("the holds: %v\n%s", err, out)
	}
	s.object("exits", "release", fmt.Sprint(hold["id"]))
	s.start()
}

// logged returns how many uses of an exit the database of a service on SQLite has.
func (s *service) logged() (uses int) {
	s.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.dir, "agentproxy.db")+"?_busy_timeout=10000")
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(s.t.Context(), "SELECT coalesce(sum(n), 0) FROM exit_log").Scan(&uses); err != nil {
		s.t.Fatal(err)
	}
	return uses
}
