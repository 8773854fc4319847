package app_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/health"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

func TestRotate(t *testing.T) {
	t.Parallel()
	for _, product := range []string{local, remote} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := open(t, setup{unruly: true})
			agent := w.register()
			v := w.buy(agent, product)
			told := &witness{}
			w.Watch(told)
			w.clock.Advance(time.Minute)
			d, err := w.sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID})
			ok(t, err)
			got := d.View
			if d.Outcome != ports.Completed || got.ID != v.ID || got.Exits[0] == v.Exits[0] || got.Rotation.Count != 1 || !got.Rotation.LastAt.Equal(w.clock.Now()) {
				t.Errorf("rotated %d %+v", d.Outcome, got.Session)
			}
			if got.Password != v.Password || got.Cost != v.Cost {
				t.Errorf("rotation changed the password or the cost: %+v", got.Cost)
			}
			same(t, "read", w.read(agent, v.ID).Exits[0], got.Exits[0])
			same(t, "told", told.take(), "session "+v.ID)
			list, err := w.sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
			ok(t, err)
			if e := list.Items[0]; e.Type != "rotated" || e.Source.String() != "agent" || e.Code != "manual" || e.ExitIP != got.Exits[0].IP.String() {
				t.Errorf("the feed has %+v", e)
			}
			o, err := w.stats.Overview(t.Context(), agent)
			ok(t, err)
			same(t, "rotations", o.Rotations, 1)
		})
		t.Run(product+" again under its key", func(t *testing.T) {
			t.Parallel()
			w := open(t, setup{unruly: true})
			agent := w.register()
			v := w.buy(agent, product)
			in := sessions.Rotate{AgentID: agent, SessionID: v.ID, Reason: health.RotationBlock, Call: key("k")}
			first, err := w.sessions.Rotate(t.Context(), in)
			ok(t, err)
			before := w.dump()
			again, err := w.sessions.Rotate(t.Context(), in)
			ok(t, err)
			if again.Outcome != ports.Completed || !again.Replayed || again.View.Exits[0] != first.View.Exits[0] || again.View.Rotation.Count != 1 {
				t.Errorf("replayed %+v", again)
			}
			same(t, "the database", w.dump(), before)
			in.Call.Hash = []byte("other")
			_, err = w.sessions.Rotate(t.Context(), in)
			refused(t, err, domain.ErrIdempotencyConflict)
			in.Call.Hash = key("").Hash
			_, err = w.sessions.Terminate(t.Context(), agent, v.ID)
			ok(t, err)
			again, err = w.sessions.Rotate(t.Context(), in)
			ok(t, err)
			same(t, "the session", again.View.Status, session.Terminated)
		})
	}
}

func TestRotationReasons(t *testing.T) {
	t.Parallel()
	for reason, score := range map[health.RotationReason]int{"": 100, health.RotationManual: 100, health.RotationScheduled: 100,
		health.RotationBlock: 92, health.RotationCaptcha: 92, health.RotationHTTP403: 92, health.RotationHTTP429: 95, health.RotationTimeout: 96} {
		w := newWorld(t)
		agent := w.register()
		v := w.buy(agent, local)
		d, err := w.sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID, Reason: reason})
		ok(t, err)
		same(t, "the score after "+string(reason), d.View.Verdict.HealthScore, score)
		same(t, "the reason", d.View.Verdict.Reason, health.FreshExit)
	}
	w := newWorld(t)
	agent := w.register()
	v := w.buy(agent, local)
	_, err := w.sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID, Reason: "bored"})
	refused(t, err, domain.ErrInvalid)
}

func TestRotateIsRefused(t *testing.T) {
	t.Parallel()
	w := open(t, setup{exits: 2}) // one dynamic exit
	agent := w.rich(100)
	terminated, fixed := w.buy(agent, local), w.buy(agent, static)
	later, farLater := w.buy(agent, localLater), w.buy(agent, remoteLater)
	_, err := w.sessions.Terminate(t.Context(), agent, terminated.ID)
	ok(t, err)
	_, err = w.sessions.Terminate(t.Context(), agent, fixed.ID)
	ok(t, err)
	again := w.buy(agent, static)
	for _, c := range []struct {
		claim, id string
		want      error
	}{
		{"a static one", again.ID, domain.ErrInvalid},
		{"a static one that ended: the type comes first", fixed.ID, domain.ErrInvalid},
		{"one that is creating", later.ID, session.ErrNotReady},
		{"one that is creating elsewhere", farLater.ID, session.ErrNotReady},
		{"one that ended", terminated.ID, session.ErrOver},
		{"one that is not there", "sess_none", session.ErrNotFound},
		{"one without another exit", w.buy(agent, local).ID, catalog.ErrOutOfStock},
	} {
		t.Run(c.claim, func(t *testing.T) {
			before := w.dump()
			_, err := w.sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: c.id, Call: key("k")})
			refused(t, err, c.want)
			same(t, "the database", w.dump(), before)
		})
	}
	t.Run("when the seller fails", func(t *testing.T) {
		v := w.buy(agent, remote)
		for class, want := range map[procurement.Class]error{procurement.Temporary: ports.ErrProvider, procurement.TimedOut: ports.ErrTimeout,
			procurement.Ambiguous: ports.ErrProvider, procurement.OutOfStock: catalog.ErrOutOfStock} {
			w.seller.Always(fake.Rotate, fake.Refuse(class))
			_, err := w.sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID})
			refused(t, err, want)
		}
		same(t, "rotations", w.read(agent, v.ID).Rotation.Count, 0)
	})
}

func (w *world) timed(agent, product string, interval time.Duration) sessions.View {
	w.t.Helper()
	f := form(product)
	f.RotationMode, f.RotationInterval = session.Timed, &interval
	d, err := w.sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: f})
	ok(w.t, err)
	return d.View
}

func TestRotateDue(t *testing.T) {
	t.Parallel()
	for _, product := range []string{local, remote} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := open(t, setup{unruly: true})
			agent := w.register()
			v := w.timed(agent, product, time.Minute)
			told := &witness{}
			w.Watch(told)
			w.clock.Advance(time.Minute - time.Microsecond)
			r, err := w.traffic.RotateDue(t.Context(), v.ID)
			ok(t, err)
			if r.Rotation != 0 || r.Exits[0] != v.Exits[0] || !r.NextAt.Equal(v.Rotation.NextAt) || told.take() != "" {
				t.Errorf("not due, and yet the route is %+v", r)
			}
			w.clock.Advance(30 * time.Second)
			r, err = w.traffic.RotateDue(t.Context(), v.ID)
			ok(t, err)
			if r.Rotation != 1 || r.Exits[0] == v.Exits[0] || !r.NextAt.Equal(w.clock.Now().Add(time.Minute)) {
				t.Errorf("due, and the route is %+v", r)
			}
			same(t, "told", told.take(), "session "+v.ID)
			list, err := w.sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
			ok(t, err)
			if e := list.Items[0]; e.Type != "rotated" || e.Source.String() != "service" || e.Code != "scheduled" {
				t.Errorf("the feed has %+v", e)
			}
			now, err := w.traffic.Route(t.Context(), v.ID)
			ok(t, err)
			if now.Rotation != r.Rotation || now.Exits[0] != r.Exits[0] || !now.NextAt.Equal(r.NextAt) {
				t.Errorf("the route is %+v, was told as %+v", now, r)
			}
		})
		t.Run(product+" by many at once", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			agent := w.register()
			v := w.timed(agent, product, 10*time.Second)
			w.clock.Advance(time.Minute)
			parallel(10, func(int) {
				if r, err := w.traffic.RotateDue(context.Background(), v.ID); err != nil || r.Rotation != 1 {
					t.Errorf("%+v, %v", r, err)
				}
			})
			same(t, "rotations", w.read(agent, v.ID).Rotation.Count, 1)
		})
	}
	t.Run("without another exit it keeps the one it has until the next time", func(t *testing.T) {
		t.Parallel()
		w := open(t, setup{exits: 2, unruly: true})
		agent := w.register()
		for _, product := range []string{local, remote} {
			v := w.timed(agent, product, time.Minute)
			w.seller.Always(fake.Rotate, fake.Refuse(procurement.OutOfStock))
			w.clock.Advance(time.Hour)
			r, err := w.traffic.RotateDue(t.Context(), v.ID)
			ok(t, err)
			if r.Rotation != 0 || r.Exits[0] != v.Exits[0] || !r.NextAt.Equal(w.clock.Now().Add(time.Minute)) {
				t.Errorf("the route is %+v", r)
			}
		}
	})
	t.Run("one that never rotates by itself, and one that ended, stay", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		agent := w.register()
		v, ended := w.buy(agent, local), w.timed(agent, local, time.Minute)
		_, err := w.sessions.Terminate(t.Context(), agent, ended.ID)
		ok(t, err)
		w.clock.Advance(time.Hour)
		for _, id := range []string{v.ID, ended.ID} {
			r, err := w.traffic.RotateDue(t.Context(), id)
			ok(t, err)
			same(t, "rotations", r.Rotation, 0)
		}
		_, err = w.traffic.RotateDue(t.Context(), "sess_none")
		refused(t, err, session.ErrNotFound)
	})
}

// Under one key a session is rotated once, by any number of calls.
func TestParallelRotationsWithOneKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	v := w.buy(agent, local)
	var rotated atomic.Int32
	parallel(20, func(int) {
		d, err := w.sessions.Rotate(context.Background(), sessions.Rotate{AgentID: agent, SessionID: v.ID, Call: key("k")})
		if err != nil {
			t.Error(err)
		} else if !d.Replayed {
			rotated.Add(1)
		}
	})
	same(t, "rotated", rotated.Load(), 1)
	same(t, "rotations", w.read(agent, v.ID).Rotation.Count, 1)
}
