package storage_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain/health"
	"agentproxy/domain/policy"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
	"agentproxy/ports"
	"agentproxy/test/link"
	"agentproxy/test/pg"
	"agentproxy/test/sqlitetest"
)

// memory is a store that keeps sessions in memory, with two of agt_1, and what counts its round trips.
type memory struct {
	t     *testing.T
	st    *storage.Store
	other *storage.Store // of another process
	asked func() int64   // how often the server was asked, or on SQLite how many views had statements
	feed  ports.Watcher
	now   time.Time
	joint bool // every unit shares a transaction, as on SQLite
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	url := pg.Database(t)
	w, through := link.New(t, url, 0)
	return fillMemory(&memory{t: t, st: openURL(t, through), other: openURL(t, url), asked: w.Asked, now: now})
}

// inMemory runs a test with such a store on each database.
func inMemory(t *testing.T, test func(t *testing.T, m *memory)) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, newMemory(t))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		file := sqlitetest.File(t)
		st, other := openWith(t, storage.Config{Path: file}), openWith(t, storage.Config{Path: file})
		test(t, fillMemory(&memory{t: t, st: st, other: other, asked: st.ReadsAlone, now: now, joint: true}))
	})
}

func fillMemory(m *memory) *memory {
	t := m.t
	t.Helper()
	m.feed = m.st.Remember()
	m.st.SetRecentClock(func() time.Time { return m.now })
	addAgent(t, m.st, "agt_1", 10_000_000)
	for n := range int64(2) {
		if err := buyAhead(t.Context(), m.st, "agt_1", n, nothing); err != nil {
			t.Fatal(err)
		}
	}
	m.reads("at first", 1)
	return m
}

// reads reads the first session, and fails unless that takes the given number of round trips.
func (m *memory) reads(when string, trips int64) (read ports.SessionRead) {
	m.t.Helper()
	before := m.asked()
	reads := ports.ReadSet{Agent: "agt_1", Sessions: []string{sessionID(0)}, Recent: true}
	err := m.st.View(m.t.Context(), reads, func(ctx context.Context, tx ports.Tx) (err error) {
		if read, err = tx.Sessions().Read(ctx, "agt_1", sessionID(0)); err == nil {
			_, err = tx.Workers().HealthOf(ctx, []string{sessionID(0)})
		}
		return err
	})
	if err != nil {
		m.t.Fatal(when, err)
	}
	if asked := m.asked() - before; min(asked, 1) != trips { // a statement may have to be prepared too
		m.t.Errorf("%s: the server was asked %d times, want %d", when, asked, trips)
	}
	return read
}

// lastChange returns the place of the feed behind what is in it.
func (m *memory) lastChange() (last ports.Cursor) {
	m.t.Helper()
	view(m.t, m.st, func(ctx context.Context, tx ports.Tx) (err error) {
		last, err = tx.Changes().Last(ctx)
		return err
	})
	return last
}

// follow shows the feed of the other process from a place on, until it names the first session. What other
// transactions of the server hold back is waited for.
func (m *memory) follow(after ports.Cursor) {
	m.t.Helper()
	eventually(m.t, "the feed names the session", func() bool {
		var list []ports.Change
		view(m.t, m.st, func(ctx context.Context, tx ports.Tx) (err error) {
			list, after, err = tx.Changes().Since(ctx, after, 100)
			return err
		})
		for _, c := range list {
			if c.Session == sessionID(0) {
				m.feed.SessionChanged(c.Session)
				return true
			}
		}
		return false
	})
}

func reported(read ports.SessionRead) int64 { return read.Health.Stats().Session.Reported.TotalEvents }

// What this process changes is in the next answer, and what another changes after the feed, or a
// second.
func TestASessionInMemoryIsTrue(t *testing.T) { inMemory(t, aSessionInMemoryIsTrue) }

func aSessionInMemoryIsTrue(t *testing.T, m *memory) {
	ctx := t.Context()
	afterAlone := int64(1) // after health alone was written by a unit of no batch, which PostgreSQL has
	if m.joint {
		afterAlone = 0
	}
	alone := func(fn func(context.Context, ports.Tx) error) func() error {
		return func() error { return m.st.Update(ctx, ports.ReadSet{}, fn) }
	}
	for _, step := range []struct {
		name  string
		run   func() error
		trips int64
		holds func(ports.SessionRead) bool
	}{
		{"unchanged", func() error { return nil }, 0, func(r ports.SessionRead) bool { return reported(r) == 0 }},
		{"after telemetry", func() error { return reportAhead(ctx, m.st, "agt_1", sessionID(0), sessionID(1)) }, 0,
			func(r ports.SessionRead) bool { return reported(r) == 1 }},
		{"after telemetry of another session", func() error { return reportAhead(ctx, m.st, "agt_1", sessionID(1)) }, 0,
			func(r ports.SessionRead) bool { return reported(r) == 1 }},
		{"after the health was written alone", alone(func(ctx context.Context, tx ports.Tx) error {
			return tx.Health().Put(ctx, sessionID(0), health.State{})
		}), afterAlone, func(r ports.SessionRead) bool { return reported(r) == 0 }},
		{"after traffic", alone(func(ctx context.Context, tx ports.Tx) error {
			return tx.Traffic().PutUsage(ctx, sessionID(0), traffic.Delta{Up: 7, At: now})
		}), 1, func(r ports.SessionRead) bool { return r.Usage.Up == 7 }},
		{"after a change by another process", func() error { return reportAhead(ctx, m.other, "agt_1", sessionID(0)) }, 0,
			func(r ports.SessionRead) bool { return reported(r) == 0 }},
		{"when the feed showed it", func() error { m.feed.SessionChanged(sessionID(0)); return nil }, 1,
			func(r ports.SessionRead) bool { return reported(r) == 1 }},
		{"when the feed missed some", func() error { m.feed.SessionChanged(""); return nil }, 1,
			func(r ports.SessionRead) bool { return reported(r) == 1 }},
		{"just before a second", func() error { m.now = m.now.Add(time.Second - 1); return nil }, 0,
			func(r ports.SessionRead) bool { return reported(r) == 1 }},
		{"after telemetry of it", func() error { return reportAhead(ctx, m.st, "agt_1", sessionID(0)) }, 0,
			func(r ports.SessionRead) bool { return reported(r) == 2 }},
		{"after a second", func() error { m.now = m.now.Add(1); return nil }, 1,
			func(r ports.SessionRead) bool { return reported(r) == 2 }},
		{"after telemetry in front of a statement", alone(func(ctx context.Context, tx ports.Tx) error {
			reads, err := tx.Health().Get(ctx, "agt_1", []string{sessionID(0)})
			if err != nil {
				return err
			}
			state := reads[sessionID(0)].State
			state.Report(health.Event{Type: health.Success, At: now})
			err = tx.Health().Put(ctx, sessionID(0), state)
			_, statement := tx.Counters().Get(ctx, "agt_1")
			return errors.Join(err, statement)
		}), afterAlone, func(r ports.SessionRead) bool { return reported(r) == 3 }},
		{"after it ended", func() error { return endAhead(ctx, m.st, "agt_1", sessionID(0)) }, 1,
			func(r ports.SessionRead) bool { return r.Status == session.Terminated }},
		{"when a unit failed", func() error {
			err := alone(func(ctx context.Context, tx ports.Tx) error {
				return errors.Join(tx.Health().Put(ctx, sessionID(0), health.State{}), errUnit)
			})()
			if errors.Is(err, errUnit) {
				err = nil
			}
			return err
		}, 1, func(r ports.SessionRead) bool { return reported(r) == 3 }},
	} {
		if err := step.run(); err != nil {
			t.Fatal(step.name, err)
		}
		if r := m.reads(step.name, step.trips); !step.holds(r) {
			t.Errorf("%s: %+v with %d reports", step.name, r.Session, reported(r))
		}
	}
}

// Another process names in the feed what it changed of a session, in a batch or alone, so that it is read anew
// before it is a second old.
func TestWhatAnotherProcessChangesIsReadAnew(t *testing.T) {
	inMemory(t, whatAnotherProcessChangesIsReadAnew)
}

func whatAnotherProcessChangesIsReadAnew(t *testing.T, m *memory) {
	ctx := t.Context()
	put := func(change func(*session.Session)) func(context.Context, ports.Tx) error {
		return func(ctx context.Context, tx ports.Tx) error {
			s, err := tx.Sessions().Get(ctx, "agt_1", sessionID(0))
			if err != nil {
				return err
			}
			change(&s)
			return tx.Sessions().Put(ctx, s)
		}
	}
	batch := ports.ReadSet{Agent: "agt_1", Sessions: []string{sessionID(0)}}
	networks := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	for _, step := range []struct {
		name  string
		run   func() error
		holds func(ports.SessionRead) bool
	}{
		{"a password that is replaced, alone", func() error {
			return m.other.Update(ctx, ports.ReadSet{}, put(func(s *session.Session) { s.PasswordNo = 7 }))
		}, func(r ports.SessionRead) bool { return r.PasswordNo == 7 }},
		{"a password that is replaced, in a batch", func() error {
			return m.other.Update(ctx, batch, put(func(s *session.Session) { s.PasswordNo = 8 }))
		}, func(r ports.SessionRead) bool { return r.PasswordNo == 8 }},
		{"networks, in a batch", func() error {
			return m.other.Update(ctx, batch, put(func(s *session.Session) { s.AllowedIPs = networks }))
		}, func(r ports.SessionRead) bool { return slices.Equal(r.AllowedIPs, networks) }},
		{"a policy", func() error {
			return m.other.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				return tx.Policies().Put(ctx, sessionID(0), policy.Own{Mode: policy.Enforce, Deny: []string{"example.com"}})
			})
		}, func(ports.SessionRead) bool { return true }},
		{"an end, in a batch", func() error { return endAhead(ctx, m.other, "agt_1", sessionID(0)) },
			func(r ports.SessionRead) bool { return r.Status == session.Terminated }},
	} {
		after := m.lastChange()
		m.reads("before "+step.name, 0)
		if err := step.run(); err != nil {
			t.Fatal(step.name, err)
		}
		m.follow(after)
		if r := m.reads(step.name, 1); !step.holds(r) {
			t.Errorf("%s: read %+v", step.name, r.Session)
		}
	}
}

// A session in memory is shown to its agent alone, and to views that take it alone.
func TestASessionInMemoryIsOfItsAgent(t *testing.T) { inMemory(t, aSessionInMemoryIsOfItsAgent) }

func aSessionInMemoryIsOfItsAgent(t *testing.T, m *memory) {
	reads := ports.ReadSet{Agent: "agt_2", Sessions: []string{sessionID(0)}, Recent: true}
	err := m.st.View(t.Context(), reads, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Sessions().Read(ctx, "agt_2", sessionID(0))
		return err
	})
	if !errors.Is(err, session.ErrNotFound) {
		t.Errorf("another agent: %v", err)
	}
	if m.joint { // such a view is not counted
		return
	}
	before := m.asked()
	if _, err := readAhead(t.Context(), m.st, "agt_1", sessionID(0)); err != nil || m.asked() == before {
		t.Errorf("a view that takes nothing from memory: %v, the server was asked %d times", err, m.asked()-before)
	}
}

// What was read, or written, before a unit changed a session is not kept after it.
func TestWhatIsReadWhileAUnitCommitsIsNotKept(t *testing.T) {
	inMemory(t, whatIsReadWhileAUnitCommitsIsNotKept)
}

func whatIsReadWhileAUnitCommitsIsNotKept(t *testing.T, m *memory) {
	reads := ports.ReadSet{Agent: "agt_1", Sessions: []string{sessionID(0)}, Recent: true}
	write := func(reports int) func() {
		return func() {
			err := m.st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				var s health.State
				for range reports {
					s.Report(health.Event{Type: health.Success, At: now})
				}
				return tx.Health().Put(ctx, sessionID(0), s)
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
	m.feed.SessionChanged("")
	if err := m.st.ReadWhile(reads, write(3)); err != nil {
		t.Fatal(err)
	}
	if n := reported(m.reads("read meanwhile", 1)); n != 3 {
		t.Errorf("%d reports, want 3", n)
	}
	m.feed.SessionChanged("")
	err := m.st.ReadWhile(reads, func() {
		write(5)()
		m.reads("anew, before the first read ends", 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := reported(m.reads("what the second read found", 0)); n != 5 {
		t.Errorf("%d reports, want 5", n)
	}
	m.st.WriteWhile(sessionID(0), nil, write(4))
	if n := reported(m.reads("written meanwhile", 1)); n != 4 {
		t.Errorf("%d reports, want 4", n)
	}
	m.feed.SessionChanged("")
	m.st.WriteWhile(sessionID(0), nil, func() { m.reads("a read while it is written", 1) })
	if n := reported(m.reads("then", 1)); n != 4 {
		t.Errorf("%d reports, want 4", n)
	}
	m.st.WriteWhile(sessionID(0), nil, func() {
		m.now = m.now.Add(time.Second)
		m.reads("a read while it is written and old", 1)
	})
	if n := reported(m.reads("then", 1)); n != 4 {
		t.Errorf("%d reports, want 4", n)
	}
}

// The health of workers is no part of what is kept, so their sessions are always read.
func TestASessionWithWorkersIsNotKept(t *testing.T) { inMemory(t, aSessionWithWorkersIsNotKept) }

func aSessionWithWorkersIsNotKept(t *testing.T, m *memory) {
	m.reads("before", 0)
	err := m.st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Workers().Insert(ctx, worker.Worker{SessionID: sessionID(0), Name: "w01", CreatedAt: now})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	m.reads("with a worker", 1)
	m.reads("again", 1)
}

// Sessions in memory have a bound, and those that are too old make room.
func TestSessionsInMemoryAreBounded(t *testing.T) { inMemory(t, sessionsInMemoryAreBounded) }

func sessionsInMemoryAreBounded(t *testing.T, m *memory) {
	ids := make([]string, storage.RecentMax+1)
	for i := range ids {
		ids[i] = fmt.Sprint("sess_of_nobody_", i)
	}
	m.st.FillRecent(ids[:storage.RecentMax-1]...)
	m.reads("the one that was there", 0)
	m.st.FillRecent(ids...)
	if n := m.st.Remembered(); n != storage.RecentMax {
		t.Errorf("%d sessions are in memory", n)
	}
	m.now = m.now.Add(time.Minute)
	m.st.FillRecent(ids[len(ids)-1])
	m.reads("too old", 1)
	m.reads("no room", 1)
}
