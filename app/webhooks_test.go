package app_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/webhooks"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// event makes one event of an agent and returns its delivery.
func (w *world) event(agent string) webhook.Delivery {
	w.t.Helper()
	_, err := w.webhooks.Test(w.t.Context(), agent)
	ok(w.t, err)
	return w.deliveries(agent)[0]
}

func (w *world) setURL(agent, url string) accounts.Updated {
	w.t.Helper()
	u, err := w.accounts.Update(w.t.Context(), accounts.Update{AgentID: agent, Update: account.Update{WebhookURL: &url}})
	ok(w.t, err)
	return u
}

func (w *world) endpoint(agent string) webhooks.EndpointView {
	w.t.Helper()
	e, err := w.webhooks.Endpoint(w.t.Context(), agent)
	ok(w.t, err)
	return e
}

func TestAnEventIsDelivered(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.hooked()
	id, err := w.webhooks.Test(t.Context(), agent)
	ok(t, err)
	d := w.deliveries(agent)[0]
	if d.EventID != id || d.Status != webhook.Pending || d.Type != webhook.Test || !d.NextAttemptAt.Equal(w.clock.Now()) {
		t.Errorf("the delivery is %+v", d)
	}
	w.clock.Advance(time.Second)
	ok(t, w.deliver())
	got := w.receiver.take()
	if len(got) != 1 || got[0].URL != hook || got[0].ID != id || !got[0].At.Equal(w.clock.Now()) ||
		len(got[0].Secrets) != 1 || got[0].Secrets[0] != w.secrets.WebhookSecret(agent, 1) {
		t.Fatalf("received %+v", got)
	}
	same(t, "the body", string(got[0].Body), `{"type":"webhook.test","timestamp":"`+
		d.CreatedAt.Format("2006-01-02T15:04:05.000Z07:00")+`","data":{"agent_id":"`+agent+`"}}`)
	d = w.deliveries(agent)[0]
	if d.Status != webhook.Delivered || d.Attempts != 1 || d.LastStatusCode != 204 || d.LastError != "" || !d.NextAttemptAt.IsZero() {
		t.Errorf("the delivery is %+v", d)
	}
	same(t, "jobs", len(w.tries()), 0)
	if e := w.endpoint(agent); !e.LastDeliveryAt.Equal(w.clock.Now()) || e.State() != webhook.Enabled {
		t.Errorf("the endpoint is %+v", e)
	}
	ok(t, w.webhooks.Deliver(t.Context(), d.ID, d.CreatedAt))
	same(t, "calls of a job that runs again", len(w.receiver.take()), 0)
	ok(t, w.webhooks.Deliver(t.Context(), "dlv_none", d.CreatedAt))
}

func TestAFailureIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.hooked()
	w.event(agent)
	w.receiver.answers = []webhook.Outcome{{StatusCode: 500}, {StatusCode: 429, RetryAfter: time.Hour}, {Err: "no answer"}}
	for i, pause := range []struct{ least, most time.Duration }{
		{4 * time.Second, 6 * time.Second}, {time.Hour, time.Hour}, {24 * time.Minute, 36 * time.Minute},
	} {
		ok(t, w.deliver())
		d := w.deliveries(agent)[0]
		wait := d.NextAttemptAt.Sub(w.clock.Now())
		if d.Status != webhook.Pending || d.Attempts != i+1 || d.LastError == "" || wait < pause.least || wait > pause.most {
			t.Fatalf("after %d failures: %+v, in %s", i+1, d, wait)
		}
		if jobs := w.tries(); len(jobs) != 1 || !jobs[0].due.Equal(d.NextAttemptAt) {
			t.Fatalf("the jobs are %+v", jobs)
		}
		early := w.webhooks.Deliver(t.Context(), d.ID, d.NextAttemptAt)
		if later, is := errors.AsType[ports.RequeueAfter](early); !is || time.Duration(later) != wait {
			t.Errorf("too early: %v", early)
		}
		w.clock.Set(d.NextAttemptAt)
	}
	ok(t, w.deliver())
	got := w.receiver.take()
	same(t, "calls", len(got), 4)
	for _, m := range got {
		if m.ID != got[0].ID || string(m.Body) != string(got[0].Body) {
			t.Errorf("a repetition differs: %+v", m)
		}
	}
	same(t, "the status", w.deliveries(agent)[0].Status, webhook.Delivered)
}

// An internal error leaves the delivery as it is: the job fails and runs again.
func TestAFaultOfOursIsNoAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.hooked()
	d := w.event(agent)
	w.receiver.err = errors.New("no sockets")
	if err := w.deliver(); !errors.Is(err, w.receiver.err) {
		t.Errorf("the job says %v", err)
	}
	same(t, "the delivery", w.deliveries(agent)[0], d)
	w.receiver.err = nil
	w.store.failUpdates(1) // sent, and then the process dies
	refused(t, w.deliver(), errStore)
	same(t, "the delivery", w.deliveries(agent)[0], d)
	ok(t, w.deliver())
	got := w.receiver.take()
	if len(got) != 2 || got[0].ID != got[1].ID {
		t.Errorf("received %+v", got)
	}
	same(t, "the status", w.deliveries(agent)[0].Status, webhook.Delivered)
}

func TestAnEndpointThatIsGoneIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.hooked()
	w.receiver.answer(500)
	w.event(agent)
	ok(t, w.deliver())
	w.receiver.answer(410)
	w.event(agent)
	ok(t, w.deliver())
	if e := w.endpoint(agent); e.State() != webhook.Disabled || !e.DisabledAt.Equal(w.clock.Now()) {
		t.Fatalf("the endpoint is %+v", e)
	}
	_, err := w.webhooks.Test(t.Context(), agent)
	refused(t, err, webhook.ErrDisabled)
	_, err = w.webhooks.Redeliver(t.Context(), agent, w.deliveries(agent)[0].ID)
	refused(t, err, webhook.ErrDisabled)
	t.Run("what waits is given up, and what happens meanwhile is listed only", func(t *testing.T) {
		w.receiver.take()
		jobs := len(w.tries())
		w.buy(agent, local)
		same(t, "the newest at once", w.deliveries(agent)[0].Status, webhook.Failed)
		same(t, "its jobs", len(w.tries()), jobs)
		w.clock.Advance(time.Minute)
		ok(t, w.deliver())
		same(t, "calls", len(w.receiver.take()), 0)
		same(t, "jobs", len(w.tries()), 0)
		list := w.deliveries(agent)
		same(t, "deliveries", len(list), 3)
		for _, d := range list {
			if d.Status != webhook.Failed || d.LastError == "" {
				t.Errorf("the delivery is %+v", d)
			}
		}
		same(t, "the newest", list[0].Type, webhook.SessionActive)
	})
	t.Run("another name enables nothing, the URL does, the same too", func(t *testing.T) {
		_, err := w.accounts.Update(t.Context(), accounts.Update{AgentID: agent, Update: account.Update{Name: new("other")}})
		ok(t, err)
		same(t, "the state", w.endpoint(agent).State(), webhook.Disabled)
		same(t, "the secret", w.setURL(agent, hook).WebhookSecret, "")
		same(t, "the state", w.endpoint(agent).State(), webhook.Enabled)
	})
	t.Run("what failed is delivered when asked for", func(t *testing.T) {
		d, err := w.webhooks.Redeliver(t.Context(), agent, w.deliveries(agent)[0].ID)
		ok(t, err)
		if d.Status != webhook.Pending || !d.NextAttemptAt.Equal(w.clock.Now()) {
			t.Errorf("the delivery is %+v", d)
		}
		ok(t, w.deliver())
		got := w.receiver.take()
		if len(got) != 1 || got[0].ID != d.EventID {
			t.Errorf("received %+v", got)
		}
		same(t, "the status", w.deliveries(agent)[0].Status, webhook.Delivered)
	})
}

func TestFiveDaysOfFailuresDisable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.hooked()
	start := w.clock.Now()
	w.receiver.always = 503
	for w.endpoint(agent).State() == webhook.Enabled {
		if w.clock.Now().Sub(start) > 6*session.Day {
			t.Fatal("six days of failures disable nothing")
		}
		w.event(agent)
		ok(t, w.deliver())
		w.clock.Advance(12 * time.Hour)
	}
	if took := w.endpoint(agent).DisabledAt.Sub(start); took != 5*session.Day {
		t.Errorf("disabled after %s", took)
	}
}

func TestTheURLIsTheOneOfTheMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.hooked()
	w.event(agent)
	w.setURL(agent, "https://example.org/new")
	ok(t, w.deliver())
	same(t, "the URL", w.receiver.take()[0].URL, "https://example.org/new")
	w.event(agent)
	w.setURL(agent, "")
	ok(t, w.deliver())
	same(t, "calls without a URL", len(w.receiver.take()), 0)
	same(t, "the status", w.deliveries(agent)[0].Status, webhook.Failed)
	_, err := w.webhooks.Test(t.Context(), agent)
	refused(t, err, webhook.ErrNoEndpoint)
	_, _, err = w.webhooks.RotateSecret(t.Context(), agent)
	refused(t, err, webhook.ErrNoEndpoint)
}

func TestASecretIsRotated(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.register()
	same(t, "the hint", w.endpoint(agent).SecretHint, "")
	first := w.setURL(agent, hook).WebhookSecret
	same(t, "the first", first, w.secrets.WebhookSecret(agent, 1))
	same(t, "the hint", w.endpoint(agent).SecretHint, first[len(first)-4:])
	told := &witness{}
	w.Watch(told)
	second, at, err := w.webhooks.RotateSecret(t.Context(), agent)
	ok(t, err)
	same(t, "told", told.take(), "agent "+agent)
	same(t, "the second", second, w.secrets.WebhookSecret(agent, 2))
	same(t, "rotated at", at, w.clock.Now())
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{0, second + " " + first}, {24*time.Hour - 1000, second + " " + first}, {1000, second}} {
		w.clock.Advance(c.after)
		w.event(agent)
		ok(t, w.deliver())
		got := ""
		for i, s := range w.receiver.take()[0].Secrets {
			if i > 0 {
				got += " "
			}
			got += s
		}
		same(t, "the secrets", got, c.want)
	}
	same(t, "the secret of another URL", w.setURL(agent, "https://example.org/").WebhookSecret, "")
}

func TestRedeliver(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent, other := w.hooked(), w.hooked()
	d := w.event(agent)
	_, err := w.webhooks.Redeliver(t.Context(), other, d.ID)
	refused(t, err, webhook.ErrNotFound)
	_, err = w.webhooks.Redeliver(t.Context(), agent, "dlv_none")
	refused(t, err, webhook.ErrNotFound)
	t.Run("one that waits is due at once, and its old job does nothing", func(t *testing.T) {
		w.receiver.answer(500)
		ok(t, w.deliver())
		old := w.deliveries(agent)[0]
		w.clock.Advance(time.Second)
		got, err := w.webhooks.Redeliver(t.Context(), agent, d.ID)
		ok(t, err)
		same(t, "due", got.NextAttemptAt, w.clock.Now())
		ok(t, w.deliver())
		same(t, "calls", len(w.receiver.take()), 2)
		w.clock.Advance(time.Minute)
		ok(t, w.webhooks.Deliver(t.Context(), d.ID, old.NextAttemptAt))
		same(t, "calls of the old job", len(w.receiver.take()), 0)
	})
	t.Run("one that was delivered is sent again under its ids", func(t *testing.T) {
		_, err := w.webhooks.Redeliver(t.Context(), agent, d.ID)
		ok(t, err)
		w.forgetTries()
		ok(t, w.webhooks.Deliver(t.Context(), d.ID, w.clock.Now()))
		same(t, "the event", w.receiver.take()[0].ID, d.EventID)
		same(t, "the attempts", w.deliveries(agent)[0].Attempts, 3)
	})
	t.Run("lists are filtered by status", func(t *testing.T) {
		w.event(agent)
		for status, n := range map[webhook.Status]int{"": 2, webhook.Pending: 1, webhook.Delivered: 1, webhook.Failed: 0} {
			list, err := w.webhooks.Deliveries(t.Context(), agent, status, domain.Page{Number: 1, Size: 20})
			ok(t, err)
			same(t, "listed "+string(status), list.Total, n)
		}
		_, err := w.webhooks.Deliveries(t.Context(), agent, "lost", domain.Page{Number: 1, Size: 20})
		refused(t, err, domain.ErrInvalid)
	})
}

func (w *world) forgetTries() { w.exec(`DELETE FROM test_jobs WHERE kind = ?`, ports.DeliverJob) }

func TestLostJobsAreStoredAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.hooked()
	for range 3 {
		w.event(agent)
	}
	w.forgetTries()
	w.clock.Advance(5 * time.Minute)
	ok(t, w.webhooks.Sweep(t.Context()))
	same(t, "jobs after five minutes", len(w.tries()), 0)
	w.clock.Advance(time.Microsecond)
	ok(t, w.webhooks.Sweep(t.Context()))
	same(t, "jobs after more", len(w.tries()), 3)
	t.Run("at the start all that is due begins anew, and the old jobs do nothing", func(t *testing.T) {
		old := w.tries()
		ok(t, w.webhooks.Recover(t.Context()))
		same(t, "jobs", len(w.tries()), 6)
		for _, j := range old {
			ok(t, w.webhooks.Deliver(t.Context(), j.id, j.due))
		}
		same(t, "calls of the old ones", len(w.receiver.take()), 0)
		ok(t, w.deliver())
		same(t, "calls", len(w.receiver.take()), 3)
	})
}

// One receiver that never answers has four deliveries on their way; the others
// are put aside, and another agent's is not late.
func TestASlowReceiverDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow, agent := w.hooked(), w.hooked()
	w.setURL(slow, slowHook)
	w.receiver.hold = make(chan struct{})
	for range 40 {
		w.event(slow)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var waits []time.Duration
	for _, j := range w.tries() {
		wg.Go(func() {
			err := w.webhooks.Deliver(t.Context(), j.id, j.due)
			mu.Lock()
			defer mu.Unlock()
			if later, is := errors.AsType[ports.RequeueAfter](err); is {
				waits = append(waits, time.Duration(later))
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(waits) }
	for deadline := time.Now().Add(time.Minute); count() < 36; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d are put aside, want 36", count())
		}
	}
	for _, wait := range waits {
		if wait < time.Second || wait > time.Minute {
			t.Errorf("one is put aside for %s", wait)
		}
	}
	d := w.event(agent)
	ok(t, w.webhooks.Deliver(t.Context(), d.ID, d.NextAttemptAt))
	same(t, "the other agent's", w.deliveries(agent)[0].Status, webhook.Delivered)
	close(w.receiver.hold)
	wg.Wait()
	same(t, "at once", w.receiver.most, 4)
	list, err := w.webhooks.Deliveries(t.Context(), slow, webhook.Delivered, domain.Page{Number: 1, Size: 100})
	ok(t, err)
	same(t, "delivered in the end", list.Total, 4)
}

// A receiver that is quick takes all that there is, four at a time.
func TestAQuickReceiverIsNotHeldUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.hooked()
	for range 20 {
		w.event(agent)
	}
	var wg sync.WaitGroup
	faults := make(chan error, 20)
	for _, j := range w.tries() {
		wg.Go(func() { faults <- w.webhooks.Deliver(t.Context(), j.id, j.due) })
	}
	wg.Wait()
	close(faults)
	for err := range faults {
		if later, is := errors.AsType[ports.RequeueAfter](err); err != nil && !is {
			t.Error(err, fmt.Sprint(later))
		}
	}
	same(t, "calls", len(w.receiver.take()), 20)
}
