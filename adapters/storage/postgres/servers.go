package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The bounds of work on PostgreSQL. Every wait has one: for a connection, a lock, a statement, the
// next statement of a unit, and the server.
const (
	connectWithin   = 10 * time.Second // at the start
	dialWithin      = 2 * time.Second  // of one server: a packet may be lost once
	connWithin      = 2 * time.Second  // for a free connection, at least what the URL allows a dial
	unitWithin      = 6 * time.Second  // at least statement_timeout and a second
	auditWithin     = 5 * time.Minute  // one snapshot of a proof
	oldestPostgres  = 13
	connectionLives = time.Hour
)

// servers has the state of the servers of a URL: which of them answers, and the newest timeline among them.
//
// A standby that is promoted begins a new timeline, so the timeline orders servers that were one
// (PostgreSQL's manual, section "Timelines"). One with a lower timeline than another that answered was
// replaced: what is written there is lost, and what was written since is missing there. It is refused,
// whether it came back by accident or is named first in the URL. So is another cluster.
type servers struct {
	settings string // the statements that set up a session
	log      *slog.Logger

	mu        sync.Mutex
	first     string            // the server that took the last connection: it is tried first
	silentOne string            // one that did not answer: it is tried last
	hosts     map[string]string // of addresses, as they were looked up
	system    string            // the identifier of the cluster
	timeline  int64
	before    int64    // the timeline from which it rose, 0 for none
	took      position // where the log of that one ended for it, 0 if that is not known
	rises     int64    // how often the timeline rose
	refused   time.Time
	last      position // just before the last commit
	losses    int64    // promotions that lost commits
	lostOn    int64    // the timeline of the last of them
	seen      seen     // by processes before
}

// errReplaced refuses a server that another has replaced.
var errReplaced = errors.New("the PostgreSQL server was replaced by another that was promoted: " +
	"it must not take writes")

// errOtherCluster refuses a server that is no copy of the one before.
var errOtherCluster = errors.New("the PostgreSQL server is of another cluster than the one that answered before")

// identity is the statement that reads the cluster of a server, its timeline, 0 on a standby, and up to where
// it follows or followed another.
const identity = "SELECT (SELECT system_identifier FROM pg_control_system())::text, CASE WHEN pg_is_in_recovery() " +
	"THEN 0 ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint END, " +
	"COALESCE(pg_last_wal_replay_lsn()::text, '')"

// watch has every connection of a configuration set up and its server checked.
func (s *servers) watch(c *pgx.ConnConfig) {
	validate, lookup := c.ValidateConnect, c.LookupFunc
	c.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := s.admit(ctx, conn); err != nil || validate == nil {
			return err
		}
		return validate(ctx, conn)
	}
	c.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		addrs, err := lookup(ctx, host)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.hosts) > maxAddresses {
			s.hosts = nil
		}
		for _, a := range addrs {
			if s.hosts == nil {
				s.hosts = map[string]string{}
			}
			s.hosts[a] = host
		}
		return addrs, err
	}
}

// maxAddresses bounds the addresses of servers in memory.
const maxAddresses = 100

// admit sets up a session, and refuses its server if another replaced it.
func (s *servers) admit(ctx context.Context, conn *pgconn.PgConn) error {
	results, err := conn.Exec(ctx, s.settings+identity).ReadAll()
	if err != nil {
		return err
	}
	var row [][]byte
	if n := len(results); n > 0 && len(results[n-1].Rows) == 1 {
		row = results[n-1].Rows[0]
	}
	if len(row) != 3 {
		return errors.New("the server did not identify itself")
	}
	timeline, err := strconv.ParseInt(string(row[1]), 10, 64)
	if err != nil {
		return fmt.Errorf("read the timeline: %w", err)
	}
	conn.CustomData()[timelineOf] = timeline
	return s.check(s.name(conn.Conn().RemoteAddr()), string(row[0]), timeline, parsePosition(string(row[2])))
}

// check refuses a server whose timeline is lower than one that was seen, and notes it otherwise, with what it took
// over of the log of another. A standby, whose timeline is 0, is checked by its cluster alone.
func (s *servers) check(name, system string, timeline int64, took position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	switch {
	case s.system != "" && system != s.system:
		err = errOtherCluster
	case timeline != 0 && (timeline < s.timeline || s.seen.replaced(system, timeline)):
		err = errReplaced
	}
	if err != nil {
		if now := time.Now(); now.Sub(s.refused) > time.Minute {
			s.refused = now
			s.log.Error("a database server was refused", "err", err, "timeline", timeline, "newest", s.timeline)
		}
		return err
	}
	if timeline > s.timeline {
		if s.timeline > 0 {
			s.rises++
			s.log.Warn("another database server was promoted", "timeline", timeline, "before", s.timeline)
		}
		s.before, s.took, s.timeline = s.timeline, took, timeline
		if s.before > 0 {
			s.promoted(took)
		}
		if err := s.seen.keep(system, timeline); err != nil {
			s.log.Error("the timeline of the database could not be kept", "err", err)
		}
	}
	s.system = system
	if timeline != 0 {
		s.first = name
		if s.silentOne == name {
			s.silentOne = ""
		}
	}
	return nil
}

// silent notes that a server does not answer, so that others are tried before it.
func (s *servers) silent(conn *pgconn.PgConn) {
	name := s.name(conn.Conn().RemoteAddr())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silentOne = name; s.first == name {
		s.first = ""
	}
}

// promotions returns how often the timeline rose.
func (s *servers) promotions() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rises
}

// name returns the host and the port of a server as the URL has them.
func (s *servers) name(addr net.Addr) string {
	if addr.Network() == "unix" {
		return filepath.Dir(addr.String())
	}
	host, port, _ := net.SplitHostPort(addr.String())
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.hosts[host]; ok {
		host = known
	}
	return net.JoinHostPort(host, port)
}

// order has the server that took the last connection tried first, and one that does not answer last:
// otherwise each dial would wait for a dead host that the URL names first.
func (s *servers) order(c *pgconn.Config) {
	all := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	s.mu.Lock()
	defer s.mu.Unlock()
	rank := func(f *pgconn.FallbackConfig) int {
		name := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port)))
		if filepath.IsAbs(f.Host) {
			name = f.Host
		}
		switch name {
		case s.first:
			return 0
		case s.silentOne:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b *pgconn.FallbackConfig) int { return rank(a) - rank(b) })
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
}

// look connects to each server of a URL that has several, which checks it. A process that starts has
// seen none, and the first that answers may be one that was replaced.
func (s *servers) look(ctx context.Context, c *pgx.ConnConfig) {
	if len(c.Fallbacks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	all := map[string]*pgconn.FallbackConfig{}
	own := &pgconn.FallbackConfig{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}
	for _, f := range append(c.Copy().Fallbacks, own) {
		all[net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port)))] = f
	}
	var asked sync.WaitGroup
	for f := range maps.Values(all) {
		asked.Go(func() {
			one := c.Copy()
			one.Host, one.Port, one.TLSConfig, one.Fallbacks = f.Host, f.Port, f.TLSConfig, nil
			if conn, err := pgx.ConnectConfig(ctx, one); err == nil {
				_ = conn.Close(ctx)
			}
		})
	}
	asked.Wait()
}

// disconnect closes the connection below, so that what waits for its server fails at once. TLS would wait to
// send its last message.
func disconnect(conn *pgconn.PgConn) {
	c := conn.Conn()
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_ = c.Close()
}
