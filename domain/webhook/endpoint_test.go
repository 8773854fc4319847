package webhook_test

import (
	"slices"
	"testing"
	"time"

	"agentproxy/domain/webhook"
)

const day = 24 * time.Hour

// try is the endpoint after an attempt of some delivery.
func try(e webhook.Endpoint, code int, at time.Time) webhook.Endpoint {
	_, e = in(webhook.Pending).After(e, webhook.Outcome{URL: e.URL, StatusCode: code}, at, 0.5)
	return e
}

func TestFiveDaysOfFailuresDisable(t *testing.T) {
	t.Run("not a moment before", func(t *testing.T) {
		e := try(endpoint(), 500, now)
		if e = try(e, 500, now.Add(5*day-1)); e.State() != webhook.Enabled || !e.FailingSince.Equal(now) {
			t.Fatalf("%+v", e)
		}
		at := now.Add(5 * day)
		if e = try(e, 500, at); e.State() != webhook.Disabled || !e.DisabledAt.Equal(at) {
			t.Errorf("%+v", e)
		}
		if later := try(e, 410, at.Add(day)); later != e {
			t.Errorf("a disabled endpoint changed to %+v", later)
		}
	})
	t.Run("the delivery that disables it has failed", func(t *testing.T) {
		d, _ := in(webhook.Pending).After(try(endpoint(), 500, now), answered(500), now.Add(5*day), 0.5)
		if d.Status != webhook.Failed {
			t.Errorf("%+v", d)
		}
	})
	t.Run("410 disables at once, after other failures too", func(t *testing.T) {
		if e := try(try(endpoint(), 500, now), 410, now.Add(time.Second)); e.State() != webhook.Disabled {
			t.Errorf("%+v", e)
		}
	})
	t.Run("a success starts anew", func(t *testing.T) {
		e := try(endpoint(), 500, now)
		e = try(e, 204, now.Add(4*day))
		if !e.FailingSince.IsZero() || !e.LastDeliveryAt.Equal(now.Add(4*day)) {
			t.Fatalf("%+v", e)
		}
		if e = try(e, 500, now.Add(6*day)); e.State() != webhook.Enabled {
			t.Errorf("%+v", e)
		}
	})
	t.Run("a success that comes too late does not enable", func(t *testing.T) {
		e := try(try(try(endpoint(), 500, now), 500, now.Add(5*day)), 200, now.Add(5*day+time.Second))
		if e.State() != webhook.Disabled || e.LastDeliveryAt.IsZero() {
			t.Errorf("%+v", e)
		}
	})
	t.Run("without a URL nothing is noted", func(t *testing.T) {
		for _, code := range []int{0, 200, 410, 500} {
			if e := try(webhook.Endpoint{}, code, now); e != (webhook.Endpoint{}) {
				t.Errorf("after %d: %+v", code, e)
			}
		}
	})
}

func TestSetURL(t *testing.T) {
	disabled := webhook.Endpoint{AgentID: "agt_1", URL: hook, Version: 3, RotatedAt: now, DisabledAt: now, FailingSince: now, LastDeliveryAt: now}
	failing := disabled
	failing.DisabledAt = time.Time{}
	for _, c := range []struct {
		claim  string
		before webhook.Endpoint
		url    string
		after  webhook.Endpoint
	}{
		{"the first URL makes the first secret", webhook.Endpoint{AgentID: "agt_1"}, hook, webhook.Endpoint{AgentID: "agt_1", URL: hook, Version: 1}},
		{"no URL makes no secret", webhook.Endpoint{}, "", webhook.Endpoint{}},
		{"the same URL enables again", disabled, hook,
			webhook.Endpoint{AgentID: "agt_1", URL: hook, Version: 3, RotatedAt: now, LastDeliveryAt: now}},
		{"another URL enables again and has no past", disabled, "https://new.example",
			webhook.Endpoint{AgentID: "agt_1", URL: "https://new.example", Version: 3, RotatedAt: now}},
		{"the same URL does not hide failures", failing, hook, failing},
		{"another URL has not failed yet", failing, "https://new.example",
			webhook.Endpoint{AgentID: "agt_1", URL: "https://new.example", Version: 3, RotatedAt: now}},
		{"an empty one ends it and keeps the secret", disabled, "", webhook.Endpoint{AgentID: "agt_1", Version: 3, RotatedAt: now}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if got := c.before.SetURL(c.url); got != c.after {
				t.Errorf("%+v\nwant %+v", got, c.after)
			}
		})
	}
}

func TestState(t *testing.T) {
	off := endpoint()
	off.DisabledAt = now
	for e, want := range map[webhook.Endpoint]webhook.State{endpoint(): webhook.Enabled, off: webhook.Disabled, {}: webhook.None,
		{DisabledAt: now}: webhook.None} {
		if e.State() != want || (e.Ready() == nil) != (want == webhook.Enabled) {
			t.Errorf("%+v is %s, %v; want %s", e, e.State(), e.Ready(), want)
		}
	}
}

func TestBothSecretsSignForADay(t *testing.T) {
	e := endpoint()
	if got := e.Signing(now); !slices.Equal(got, []int64{1}) {
		t.Errorf("before any rotation: %v", got)
	}
	e, err := e.Rotate(now)
	if err != nil || e.Version != 2 || !e.RotatedAt.Equal(now) {
		t.Fatalf("%+v, %v", e, err)
	}
	for after, want := range map[time.Duration][]int64{-time.Second: {2, 1}, 0: {2, 1}, day - 1: {2, 1}, day: {2}, 30 * day: {2}} {
		if got := e.Signing(now.Add(after)); !slices.Equal(got, want) {
			t.Errorf("%v after the rotation: %v, want %v", after, got, want)
		}
	}
	e, _ = e.Rotate(now.Add(time.Hour))
	if got := e.Signing(now.Add(2 * time.Hour)); !slices.Equal(got, []int64{3, 2}) {
		t.Errorf("after two rotations: %v", got)
	}
	if e, err := (webhook.Endpoint{Version: 1}).Rotate(now); err != webhook.ErrNoEndpoint || e.Version != 1 {
		t.Errorf("without a URL: %+v, %v", e, err)
	}
}
