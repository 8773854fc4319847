package lease

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/adapters/gateway/monotime"
	"agentproxy/domain/traffic"
)

// slowCore answers late.
type slowCore struct {
	counter
	late time.Duration
}

func (c *slowCore) Renew(ctx context.Context, replica string, requests []traffic.LeaseRequest) ([]traffic.Grant, error) {
	select {
	case <-time.After(c.late):
		return c.counter.Renew(ctx, replica, requests)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run starts a renewer for a pool in a bubble until the returned function is called, which waits for its end.
func run(p *Pool, core Core, cfg Config) (stop func()) {
	cfg.Report, cfg.IdleGive = time.Second, time.Hour
	r := NewRenewer(core, cfg, counters(), func(string, Verdict) {}, slog.New(slog.DiscardHandler))
	r.Init(p, "s")
	time.Sleep(-monotime.Now()) // a bubble begins before the program
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		r.Run(ctx)
		close(ended)
	}()
	return func() { cancel(); <-ended }
}

// one is the limits of a pool that one connection may use.
var one = Limits{Session: 1, Worker: 1, Ceiling: 1}

// A core that answers later than a connection may wait for traffic is waited for, three times as long: a slow
// database is no reason to refuse. One that fails is not.
func TestASlowAnswerIsWaitedFor(t *testing.T) {
	t.Parallel()
	const limit = 400 * time.Millisecond
	for _, c := range []struct {
		name       string
		late, call time.Duration
		want       Verdict
		took       time.Duration
	}{
		{"slow", 3*limit - 1, time.Minute, Granted, 3*limit - 1},
		{"too slow", 3*limit + 1, time.Minute, Blocked, 3 * limit},
		{"fails", time.Minute, time.Millisecond, Blocked, limit},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var p Pool
				stop := run(&p, &slowCore{counter{by: map[int64]int64{}}, c.late}, Config{Heartbeat: time.Second,
					StopAfter: time.Hour, Call: c.call})
				defer stop()
				m, began := MemberOf(idleConn{}), time.Now()
				if v := p.Admit(&m, nil, one, limit); v != c.want || time.Since(began) != c.took {
					t.Errorf("the verdict is %v after %v, want %v after %v", v, time.Since(began), c.want, c.took)
				}
			})
		})
	}
}

// A lease may be used for StopAfter since its last renewal, and again when the core is back.
func TestALeaseExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := &counter{by: map[int64]int64{}}
		var p Pool
		stop := run(&p, core, Config{Heartbeat: time.Second, StopAfter: 12 * time.Second, Call: time.Second})
		defer stop()
		m := MemberOf(idleConn{})
		if v := p.Admit(&m, nil, one, time.Second); v != Granted {
			t.Fatal(v)
		}
		core.fail.Store(true) // before the first heartbeat
		account := p.Account(&m)
		time.Sleep(12*time.Second - 1)
		n, epoch, v := account.Reserve(2)
		if v != Granted || n != 2 || !p.Covers(epoch) {
			t.Errorf("before it expires %d bytes are granted, %v", n, v)
		}
		time.Sleep(time.Nanosecond)
		if _, _, v := account.Reserve(1); v != Blocked || p.Covers(epoch) {
			t.Errorf("after it has expired: %v, a reservation counts: %v", v, p.Covers(epoch))
		}
		account.Settle(epoch, n, 0, n)
		core.fail.Store(false)
		if v := account.Await(func() bool { return false }); v != Granted {
			t.Errorf("when the core is back: %v", v)
		}
		p.Leave(&m)
	})
}

// A connection that waits for what another one has reserved has the core asked once in a tick of the renewer, not in
// a loop.
func TestReservedBytesCauseNoRetryLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := &counter{by: map[int64]int64{}, usage: traffic.Usage{Limit: 1 << 20}, most: 1000}
		var p Pool
		stop := run(&p, core, Config{Heartbeat: time.Hour, StopAfter: 24 * time.Hour, Call: time.Second})
		defer stop()
		two := Limits{Session: 2, Worker: 2, Ceiling: 2}
		holds, waits := MemberOf(idleConn{}), MemberOf(idleConn{})
		if v := p.Admit(&holds, nil, two, time.Second); v != Granted {
			t.Fatal(v)
		}
		account := p.Account(&holds)
		for used, held := int64(0), int64(0); used+held < core.usage.Limit; {
			n, epoch, v := account.Reserve(32 << 10)
			switch {
			case v == Blocked:
				account.Await(func() bool { return false })
			case used < core.usage.Limit-traffic.MinLease/2:
				account.Settle(epoch, n, 0, n)
				used += n
			default: // the rest is held
				held += n
			}
		}
		time.Sleep(time.Minute)
		before := core.calls.Load()
		if v := p.Admit(&waits, nil, two, time.Second); v != Blocked {
			t.Errorf("a connection that waits: %v", v)
		}
		if n, most := core.calls.Load()-before, int64(time.Second/p.renewer.tick)+1; n == 0 || n > most {
			t.Errorf("%d renewals in a second, want 1 to %d", n, most)
		}
		p.Leave(&holds)
	})
}

// Connections whose clients do not read keep what they reserved; the other ones of the session are granted as much as
// without them, by the next answer.
func TestReservedBytesStopNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := &counter{by: map[int64]int64{}, usage: traffic.Usage{Limit: 1 << 30}}
		var p Pool
		stop := run(&p, core, Config{Heartbeat: time.Hour, StopAfter: 24 * time.Hour, Call: time.Second})
		defer stop()
		for n := range 40 {
			m := MemberOf(idleConn{})
			began, calls := time.Now(), core.calls.Load()
			if v := p.Admit(&m, nil, Limits{Session: 100, Worker: 100, Ceiling: 100}, time.Minute); v != Granted {
				t.Fatalf("connection %d: %v", n, v)
			}
			reserved, _, v := p.Account(&m).Reserve(traffic.MinLease)
			if v != Granted || reserved != traffic.MinLease || time.Since(began) > 0 || core.calls.Load() > calls+1 {
				t.Fatalf("connection %d: %d bytes, %v, after %v and %d calls", n, reserved, v, time.Since(began), core.calls.Load()-calls)
			}
		}
	})
}
