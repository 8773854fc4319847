package sessions_test

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
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

func TestRotate(t *testing.T) {
	t.Parallel()
	for _, product := range []string{apptest.Local, apptest.Remote} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
			agent := w.Register()
			v := w.Buy(agent, product)
			notified := &apptest.ChangeRecorder{}
			w.Watch(notified)
			w.Clock.Advance(time.Minute)
			d, err := w.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID})
			apptest.OK(t, err)
			got := d.View
			if d.Outcome != ports.Completed || got.ID != v.ID || got.Exits[0] == v.Exits[0] || got.Rotation.Count != 1 || !got.Rotation.LastAt.Equal(w.Clock.Now()) {
				t.Errorf("rotated %d %+v", d.Outcome, got.Session)
			}
			if got.Password != v.Password || got.Cost != v.Cost {
				t.Errorf("rotation changed the password or the cost: %+v", got.Cost)
			}
			apptest.Equal(t, "read", w.Read(agent, v.ID).Exits[0], got.Exits[0])
			apptest.Equal(t, "notified", notified.Take(), "session "+v.ID)
			list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
			apptest.OK(t, err)
			if e := list.Items[0]; e.Type != "rotated" || e.Source.String() != "agent" || e.Code != "manual" || e.ExitIP != got.Exits[0].IP.String() {
				t.Errorf("the feed has %+v", e)
			}
			o, err := w.Stats.Overview(t.Context(), agent)
			apptest.OK(t, err)
			apptest.Equal(t, "rotations", o.Rotations, 1)
		})
		t.Run(product+" again under its key", func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
			agent := w.Register()
			v := w.Buy(agent, product)
			in := sessions.Rotate{AgentID: agent, SessionID: v.ID, Reason: health.RotationBlock, Call: apptest.Call("k")}
			first, err := w.Sessions.Rotate(t.Context(), in)
			apptest.OK(t, err)
			before := w.Dump()
			again, err := w.Sessions.Rotate(t.Context(), in)
			apptest.OK(t, err)
			if again.Outcome != ports.Completed || !again.Replayed || again.View.Exits[0] != first.View.Exits[0] || again.View.Rotation.Count != 1 {
				t.Errorf("replayed %+v", again)
			}
			apptest.Equal(t, "the database", w.Dump(), before)
			in.Call.Hash = []byte("other")
			_, err = w.Sessions.Rotate(t.Context(), in)
			apptest.ErrorIs(t, err, domain.ErrIdempotencyConflict)
			in.Call.Hash = apptest.Call("").Hash
			_, err = w.Sessions.Terminate(t.Context(), agent, v.ID)
			apptest.OK(t, err)
			again, err = w.Sessions.Rotate(t.Context(), in)
			apptest.OK(t, err)
			apptest.Equal(t, "the session", again.View.Status, session.Terminated)
		})
	}
}

func TestRotationReasons(t *testing.T) {
	t.Parallel()
	for reason, score := range map[health.RotationReason]int{"": 100, health.RotationManual: 100, health.RotationScheduled: 100,
		health.RotationBlock: 92, health.RotationCaptcha: 92, health.RotationHTTP403: 92, health.RotationHTTP429: 95, health.RotationTimeout: 96} {
		w := apptest.New(t)
		agent := w.Register()
		v := w.Buy(agent, apptest.Local)
		d, err := w.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID, Reason: reason})
		apptest.OK(t, err)
		apptest.Equal(t, "the score after "+string(reason), d.View.Verdict.HealthScore, score)
		apptest.Equal(t, "the reason", d.View.Verdict.Reason, health.FreshExit)
	}
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	_, err := w.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID, Reason: "bored"})
	apptest.ErrorIs(t, err, domain.ErrInvalid)
}

func TestRotateIsRefused(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{Exits: 2}) // one dynamic exit
	agent := w.RegisterFunded(100)
	terminated, fixed := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Static)
	later, farLater := w.Buy(agent, apptest.LocalAsync), w.Buy(agent, apptest.RemoteAsync)
	_, err := w.Sessions.Terminate(t.Context(), agent, terminated.ID)
	apptest.OK(t, err)
	_, err = w.Sessions.Terminate(t.Context(), agent, fixed.ID)
	apptest.OK(t, err)
	again := w.Buy(agent, apptest.Static)
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
		{"one without another exit", w.Buy(agent, apptest.Local).ID, catalog.ErrOutOfStock},
	} {
		t.Run(c.claim, func(t *testing.T) {
			before := w.Dump()
			_, err := w.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: c.id, Call: apptest.Call("k")})
			apptest.ErrorIs(t, err, c.want)
			apptest.Equal(t, "the database", w.Dump(), before)
		})
	}
	t.Run("when the seller fails", func(t *testing.T) {
		v := w.Buy(agent, apptest.Remote)
		for class, want := range map[procurement.Class]error{procurement.Temporary: ports.ErrProvider, procurement.TimedOut: ports.ErrTimeout,
			procurement.Ambiguous: ports.ErrProvider, procurement.OutOfStock: catalog.ErrOutOfStock} {
			w.Seller.Always(fake.Rotate, fake.Refuse(class))
			_, err := w.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID})
			apptest.ErrorIs(t, err, want)
		}
		apptest.Equal(t, "rotations", w.Read(agent, v.ID).Rotation.Count, 0)
	})
}

func TestRotateDue(t *testing.T) {
	t.Parallel()
	for _, product := range []string{apptest.Local, apptest.Remote} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
			agent := w.Register()
			v := w.BuyTimed(agent, product, time.Minute)
			notified := &apptest.ChangeRecorder{}
			w.Watch(notified)
			w.Clock.Advance(time.Minute - time.Microsecond)
			r, err := w.Traffic.RotateDue(t.Context(), v.ID)
			apptest.OK(t, err)
			if r.Rotation != 0 || r.Exits[0] != v.Exits[0] || !r.NextAt.Equal(v.Rotation.NextAt) || notified.Take() != "" {
				t.Errorf("not due, and yet the route is %+v", r)
			}
			w.Clock.Advance(30 * time.Second)
			r, err = w.Traffic.RotateDue(t.Context(), v.ID)
			apptest.OK(t, err)
			if r.Rotation != 1 || r.Exits[0] == v.Exits[0] || !r.NextAt.Equal(w.Clock.Now().Add(time.Minute)) {
				t.Errorf("due, and the route is %+v", r)
			}
			apptest.Equal(t, "notified", notified.Take(), "session "+v.ID)
			list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
			apptest.OK(t, err)
			if e := list.Items[0]; e.Type != "rotated" || e.Source.String() != "service" || e.Code != "scheduled" {
				t.Errorf("the feed has %+v", e)
			}
			now, err := w.Traffic.Route(t.Context(), v.ID)
			apptest.OK(t, err)
			if now.Rotation != r.Rotation || now.Exits[0] != r.Exits[0] || !now.NextAt.Equal(r.NextAt) {
				t.Errorf("the route is %+v, was returned as %+v", now, r)
			}
		})
		t.Run(product+" by many at once", func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.Register()
			v := w.BuyTimed(agent, product, 10*time.Second)
			w.Clock.Advance(time.Minute)
			apptest.Concurrently(10, func(int) {
				if r, err := w.Traffic.RotateDue(context.Background(), v.ID); err != nil || r.Rotation != 1 {
					t.Errorf("%+v, %v", r, err)
				}
			})
			apptest.Equal(t, "rotations", w.Read(agent, v.ID).Rotation.Count, 1)
		})
	}
	t.Run("without another exit it keeps the one it has until the next time", func(t *testing.T) {
		t.Parallel()
		w := apptest.Open(t, apptest.Options{Exits: 2, RepeatUpdates: true})
		agent := w.Register()
		for _, product := range []string{apptest.Local, apptest.Remote} {
			v := w.BuyTimed(agent, product, time.Minute)
			w.Seller.Always(fake.Rotate, fake.Refuse(procurement.OutOfStock))
			w.Clock.Advance(time.Hour)
			r, err := w.Traffic.RotateDue(t.Context(), v.ID)
			apptest.OK(t, err)
			if r.Rotation != 0 || r.Exits[0] != v.Exits[0] || !r.NextAt.Equal(w.Clock.Now().Add(time.Minute)) {
				t.Errorf("the route is %+v", r)
			}
		}
	})
	t.Run("one that never rotates by itself, and one that ended, stay", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		v, ended := w.Buy(agent, apptest.Local), w.BuyTimed(agent, apptest.Local, time.Minute)
		_, err := w.Sessions.Terminate(t.Context(), agent, ended.ID)
		apptest.OK(t, err)
		w.Clock.Advance(time.Hour)
		for _, id := range []string{v.ID, ended.ID} {
			r, err := w.Traffic.RotateDue(t.Context(), id)
			apptest.OK(t, err)
			apptest.Equal(t, "rotations", r.Rotation, 0)
		}
		_, err = w.Traffic.RotateDue(t.Context(), "sess_none")
		apptest.ErrorIs(t, err, session.ErrNotFound)
	})
}

// Under one key a session is rotated once, by any number of calls.
func TestParallelRotationsWithOneKey(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	var rotated atomic.Int32
	apptest.Concurrently(20, func(int) {
		d, err := w.Sessions.Rotate(context.Background(), sessions.Rotate{AgentID: agent, SessionID: v.ID, Call: apptest.Call("k")})
		if err != nil {
			t.Error(err)
		} else if !d.Replayed {
			rotated.Add(1)
		}
	})
	apptest.Equal(t, "rotated", rotated.Load(), 1)
	apptest.Equal(t, "rotations", w.Read(agent, v.ID).Rotation.Count, 1)
}
