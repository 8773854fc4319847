package lease

import (
	"log/slog"
	"testing"
	"time"

	"agentproxy/domain/traffic"
)

// BenchmarkSettle is what a piece of a relayed stream costs here: a reservation and its settlement, for
// the session itself and for one of a thousand workers.
func BenchmarkSettle(b *testing.B) {
	p, _, fleet := fleetOf(b, 1000)
	for _, how := range []struct {
		name  string
		share *Share
	}{{"own", nil}, {"worker", fleet[500]}} {
		b.Run(how.name, func(b *testing.B) {
			a := Account{p, how.share}
			for b.Loop() {
				n, epoch, v := a.Reserve(1)
				if v != Granted {
					b.Fatal(v)
				}
				a.Settle(epoch, n, 0, 0)
			}
		})
	}
}

// BenchmarkRenewal is one report of a session, and of a thousand workers that all moved bytes, with the
// rule of the core.
func BenchmarkRenewal(b *testing.B) {
	for _, how := range []struct {
		name   string
		moving int
	}{{"own", 0}, {"workers", 1000}} {
		b.Run(how.name, func(b *testing.B) {
			p, renew, fleet := fleetOf(b, how.moving)
			for b.Loop() {
				for _, s := range fleet {
					n, epoch, _ := Account{p, s}.Reserve(1)
					Account{p, s}.Settle(epoch, n, 0, n)
				}
				renew()
			}
		})
	}
}

// fleetOf returns a pool with a lease and the workers that it has.
func fleetOf(b *testing.B, n int) (*Pool, func(), []*Share) {
	core := &counter{by: map[int64]int64{}}
	r := NewRenewer(core, Config{Report: time.Second, Heartbeat: time.Second, IdleGive: time.Hour, StopAfter: time.Hour, Call: time.Second},
		counters(), func(string, Verdict) {}, slog.New(slog.DiscardHandler))
	p := &Pool{}
	r.Init(p, "s")
	renew := func() {
		p.mu.Lock()
		p.need()
		p.retry, p.size = 0, traffic.MaxLease
		p.mu.Unlock()
		r.round(b.Context(), true, false)
	}
	renew()
	fleet := make([]*Share, n)
	for i := range fleet {
		fleet[i] = &Share{ID: int64(i + 1)}
		p.mu.Lock()
		p.list(fleet[i])
		p.mu.Unlock()
	}
	return p, renew, fleet
}
