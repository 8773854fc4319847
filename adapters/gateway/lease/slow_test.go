package lease

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"agentproxy/domain/traffic"
)

// slowCore answers when it is released.
type slowCore struct {
	counter
	release chan struct{}
}

func (c *slowCore) Renew(ctx context.Context, replica string, requests []traffic.LeaseRequest) ([]traffic.Grant, error) {
	select {
	case <-c.release:
		return c.counter.Renew(ctx, replica, requests)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A core that answers later than a connection may wait for traffic is waited for: a slow database is no
// reason to refuse. One that fails is not.
func TestASlowAnswerIsWaitedFor(t *testing.T) {
	t.Parallel()
	const limit = 400 * time.Millisecond
	for _, c := range []struct {
		name string
		call time.Duration
		want Verdict
	}{{"slow", time.Minute, Granted}, {"fails", time.Millisecond, Blocked}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			core := &slowCore{counter{by: map[int64]int64{}}, make(chan struct{})}
			r := NewRenewer(core, Config{Report: time.Second, Heartbeat: time.Second, IdleGive: time.Hour,
				StopAfter: time.Hour, Call: c.call}, counters(), func(string, Verdict) {}, slog.New(slog.DiscardHandler))
			go r.Run(t.Context())
			var p Pool
			r.Init(&p, "s")
			if c.want == Granted {
				time.AfterFunc(limit+limit/2, func() { close(core.release) })
			}
			m := MemberOf(idleConn{})
			if v := p.Admit(&m, nil, Limits{Session: 1, Worker: 1, Ceiling: 1}, limit); v != c.want {
				t.Errorf("the verdict is %v, want %v", v, c.want)
			}
		})
	}
}
