package maintenance

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/ports"
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
// long after it as that took.
func TestTheLedgerIsProvedInTurns(t *testing.T) {
	t.Parallel()
	clock := fake.NewClock()
	a := &proving{clock: clock}
	var log strings.Builder
	p := NewProof(a, clock, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
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
		err := p.Run(t.Context())
		if got := strings.Join(a.asked, " "); err != nil || got != want {
			t.Errorf("%s: asked %q, want %q; %v", what, got, want, err)
		}
	}
	run("at first", 0, "new new new next next")
	run("at once", 0, "")
	run("in a minute", proveNewEvery, "new new new")
	run("soon after that", ProveEvery, "")
	run("a quarter of an hour after the proof", proveAllEvery-proveNewEvery-ProveEvery, "new new new next next")
	a.state.Took = time.Hour / 2
	run("too soon after one that took long", proveAllEvery, "new new new")
	run("after the longest pause", proveWithin-time.Hour/2-proveAllEvery, "new new new next next")

	log.Reset()
	a.state.Faults, a.state.Head = 0, ports.ProofHead{At: clock.Now(), Seq: 9, Entries: 7,
		Head: "00000000ffff" + strings.Repeat("0", 52)}
	for range 2 { // it is logged once
		run("with a head", proveNewEvery, "new new new")
	}
	want := "level=INFO msg=\"the head of the ledger's proof\" seq=9 entries=7 head=" + a.state.Head.Head + "\n"
	if log.String() != want {
		t.Errorf("the log has %q, want %q", log.String(), want)
	}
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
				p := NewProof(l, l.clock, slog.New(slog.DiscardHandler))
				tick := time.NewTicker(ProveEvery)
				defer tick.Stop()
				longest, last, proofs := time.Duration(0), time.Now(), 0
				for began := time.Now(); time.Since(began) < 7*24*time.Hour; <-tick.C {
					if err := p.Run(t.Context()); err != nil {
						t.Fatal(err)
					}
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
