package webhook_test

import (
	"testing"
	"time"

	"agentproxy/domain/webhook"
)

func TestTenTestsAnHour(t *testing.T) {
	var used time.Time
	take := func(at time.Duration) (wait time.Duration) {
		used, wait = webhook.TakeUnverified(used, now.Add(at))
		return wait
	}
	for i := range 10 {
		if wait := take(0); wait != 0 {
			t.Errorf("test %d waits %v", i, wait)
		}
	}
	if wait := take(0); wait != 6*time.Minute {
		t.Errorf("one more waits %v", wait)
	}
	if wait := take(6*time.Minute - 1); wait != 1 {
		t.Errorf("shortly before the end it waits %v", wait)
	}
	if wait := take(6 * time.Minute); wait != 0 {
		t.Errorf("after the wait it waits %v", wait)
	}
	sent := 0
	for m := range 600 { // from the second hour on
		if take(time.Hour+time.Duration(m)*time.Minute) == 0 {
			sent++
		}
	}
	if sent > 110 || sent < 100 {
		t.Errorf("%d tests in ten hours", sent)
	}
}

func TestATestIsSentOnce(t *testing.T) {
	d := in(webhook.Pending)
	d.Type = webhook.Test
	for _, code := range []int{0, 302, 404, 429, 500} {
		after, _ := d.After(endpoint(), answered(code), now, 0.5)
		if after.Status != webhook.Failed || after.Attempts != 2 || !after.NextAttemptAt.IsZero() {
			t.Errorf("after %d it is %+v", code, after)
		}
		if _, err := after.Redeliver(endpoint(), now); err != webhook.ErrTest {
			t.Errorf("again after %d: %v", code, err)
		}
	}
	if after, _ := d.After(endpoint(), answered(204), now, 0.5); after.Status != webhook.Delivered {
		t.Errorf("after 204 it is %+v", after)
	}
}

func TestAnEndpointIsProvenByItsLastAttempt(t *testing.T) {
	e := endpoint()
	for _, c := range []struct {
		code int
		want bool
	}{{0, false}, {204, true}, {200, true}, {500, false}, {0, false}, {204, true}} {
		if e = try(e, c.code, now); e.Verified() != c.want {
			t.Errorf("after %d: %+v", c.code, e)
		}
	}
	if e.SetURL("https://new.example").Verified() {
		t.Error("another URL is proven")
	}
}

func TestADeliveryTooMany(t *testing.T) {
	d := in(webhook.Pending).Refuse()
	if d.Status != webhook.Failed || d.LastError == "" || !d.NextAttemptAt.IsZero() {
		t.Errorf("got %+v", d)
	}
}
