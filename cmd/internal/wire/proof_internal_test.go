package wire

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/app/payments"
	"agentproxy/app/workers"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// proving is an audit that takes three calls for new entries and two for a complete proof.
type proving struct {
	ports.Audit
	clock ports.Clock
	state ports.Proof
	parts int
	asked []string
}

func (p *proving) Proof(context.Context) (ports.Proof, error) { return p.state, nil }

func (p *proving) ProveNew(context.Context) (ports.Proof, bool, error) {
	p.asked = append(p.asked, "new")
	p.parts++
	return p.state, p.parts%3 != 0, nil
}

func (p *proving) ProveNext(context.Context) (ports.Proof, error) {
	p.asked = append(p.asked, "next")
	if now := p.clock.Now(); p.state.StartedAt.IsZero() {
		p.state.StartedAt = now
	} else {
		p.state.StartedAt, p.state.At = time.Time{}, now
	}
	return p.state, nil
}

// New entries are proved each minute, everything a quarter of an hour after the last proof, or ten times as
// long after it as that took. A scrape proves nothing.
func TestTheLedgerIsProvedInTurns(t *testing.T) {
	t.Parallel()
	clock := fake.NewClock()
	a := &proving{clock: clock}
	var log strings.Builder
	p := newProof(a, clock, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})))
	run := func(what string, after time.Duration, want string) {
		t.Helper()
		clock.Advance(after)
		a.asked = nil
		apptest.OK(t, p.run(t.Context()))
		apptest.Equal(t, what, strings.Join(a.asked, " "), want)
	}
	run("at first", 0, "new new new next next")
	run("at once", 0, "")
	run("in a minute", proveNewEvery, "new new new")
	run("soon after that", proveTick, "")
	run("a quarter of an hour after the proof", proveEvery-proveNewEvery-proveTick, "new new new next next")
	a.state.Took = time.Hour / 2
	run("too soon after one that took long", proveEvery, "new new new")
	run("after the longest pause", proveWithin-time.Hour/2-proveEvery, "new new new next next")

	a.asked, a.state.Faults = nil, 2
	faults, err := p.faults(t.Context())
	apptest.OK(t, err)
	apptest.Equal(t, "the faults in a scrape", faults, 2)
	at, err := p.at(func(p ports.Proof) time.Time { return p.At })(t.Context())
	apptest.OK(t, err)
	apptest.Equal(t, "the time of the proof in a scrape", at, float64(clock.Now().UnixMilli())/1000)
	if len(a.asked) > 0 {
		t.Errorf("a scrape proves: %v", a.asked)
	}

	log.Reset()
	a.state.Faults, a.state.Head = 0, ports.ProofHead{At: clock.Now(), Seq: 9, Entries: 7,
		Head: "00000000ffff" + strings.Repeat("0", 52)}
	for range 2 { // it is logged once
		run("with a head", proveNewEvery, "new new new")
	}
	apptest.Equal(t, "the head in the log", log.String(),
		"level=INFO msg=\"the head of the ledger's proof\" seq=9 entries=7 head="+a.state.Head.Head+"\n")
	number, err := p.head(func(h ports.ProofHead) float64 { return headNumber(h.Head) })(t.Context())
	apptest.OK(t, err)
	apptest.Equal(t, "the head in a scrape", number, 65535)
}

// longLedger is an audit of a ledger whose parts take a time each.
type longLedger struct {
	ports.Audit
	clock       ports.Clock
	state       ports.Proof
	parts, left int
	each        time.Duration
}

func (l *longLedger) Proof(context.Context) (ports.Proof, error) { return l.state, nil }

func (l *longLedger) ProveNew(context.Context) (ports.Proof, bool, error) { return l.state, false, nil }

func (l *longLedger) ProveNext(context.Context) (ports.Proof, error) {
	time.Sleep(l.each)
	now := l.clock.Now()
	if l.state.StartedAt.IsZero() {
		l.state.StartedAt, l.left = now, l.parts
	}
	if l.left--; l.left == 0 {
		l.state.Took, l.state.At, l.state.SucceededAt = now.Sub(l.state.StartedAt), now, now
		l.state.StartedAt = time.Time{}
	}
	return l.state, nil
}

type bubbleClock struct{}

func (bubbleClock) Now() time.Time { return time.Now() }

// A ledger of 160 million entries is proved often enough for AgentproxyLedgerNotProved, which waits for six hours,
// to be quiet for good: also where an entry takes seven times as long as it may.
func TestALongLedgerIsProvedBeforeItsAlarm(t *testing.T) {
	t.Parallel()
	const entries, part, alarm = 160_000_000, 50_000, 6 * time.Hour
	for _, entry := range []time.Duration{time.Microsecond, 5 * time.Microsecond, 36 * time.Microsecond} {
		t.Run(entry.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &longLedger{clock: bubbleClock{}, parts: entries / part, each: part * entry}
				p := newProof(l, l.clock, slog.New(slog.DiscardHandler))
				tick := time.NewTicker(proveTick)
				defer tick.Stop()
				longest, last, proofs := time.Duration(0), time.Now(), 0
				for began := time.Now(); time.Since(began) < 7*24*time.Hour; <-tick.C {
					apptest.OK(t, p.run(t.Context()))
					if at := l.state.SucceededAt; at.After(last) {
						longest, last, proofs = max(longest, at.Sub(last)), at, proofs+1
					}
				}
				if longest = max(longest, time.Since(last)); longest >= alarm || proofs < 28 {
					t.Errorf("%d proofs in a week, at most %s apart", proofs, longest)
				}
			})
		})
	}
}

// What grows is dropped and archived by the leader's tasks, and by no other replica.
func TestTheLeaderDropsDaysAndArchivesSessions(t *testing.T) {
	t.Parallel()
	w := apptest.OpenPostgres(t)
	agent := w.Register()
	w.LetArchive()
	v := w.Buy(agent, apptest.Local)
	_, _, err := w.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: v.ID, Names: []string{"a"}})
	apptest.OK(t, err)
	_, err = w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	leads := false
	all := tasksIn{Store: w.DB, Hub: w.Hub, Observer: w.Observer, Passes: w.Tasks, Catalog: w.Catalog, Accounts: w.Accounts, Orders: &payments.Orders{}}.
		list(nil, func() bool { return leads })
	run := func(name string) {
		t.Helper()
		i := slices.IndexFunc(all, func(t task) bool { return t.name == name })
		if i < 0 || all[i].leads == nil || all[i].leads() {
			t.Fatalf("no task of the leader alone is called %q", name)
		}
		apptest.OK(t, all[i].run(t.Context()))
	}
	days := func() int {
		return len(w.Column(`SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'event_chunks_d%'
			AND substring(relname FROM 15)::bigint < ?`, w.Clock.Now().Unix()/86400-8))
	}
	// The migration made days by the clock of the server.
	w.Clock.Set(time.Now().Add(91 * session.Day))
	apptest.OK(t, w.DB.MeasureClock(t.Context()))
	if days() == 0 {
		t.Fatal("no day is old")
	}
	run("keep partitions of events")
	apptest.Equal(t, "old days that are left", days(), 0)
	run("settle sessions")
	run("archive sessions")
	apptest.Equal(t, "archived sessions", len(w.Column("SELECT session FROM session_archive")), 1)
}
