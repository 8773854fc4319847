package webhooks_test

import (
	"errors"
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
	"agentproxy/test/apptest"
)

// sendEvent makes one event of an agent, which is tried again when it fails, and returns its delivery.
func sendEvent(w *apptest.World, agent string) webhook.Delivery {
	w.T.Helper()
	_, _, err := w.Accounts.RotateSecret(w.T.Context(), accounts.Caller{AgentID: agent}, "")
	apptest.OK(w.T, err)
	return listDeliveries(w, agent)[0]
}

// prove makes the endpoint of an agent one that works.
func prove(w *apptest.World, agent string) {
	w.T.Helper()
	sendEvent(w, agent)
	apptest.OK(w.T, runDeliveries(w))
	w.Receiver.Take()
	if !readEndpoint(w, agent).Verified() {
		w.T.Fatal("the endpoint is not proven")
	}
}

func setWebhookURL(w *apptest.World, agent, url string) accounts.Updated {
	w.T.Helper()
	u, err := w.Accounts.Update(w.T.Context(), accounts.Update{AgentID: agent, Update: account.Update{WebhookURL: &url}})
	apptest.OK(w.T, err)
	return u
}

func readEndpoint(w *apptest.World, agent string) webhooks.EndpointView {
	w.T.Helper()
	e, err := w.Webhooks.Endpoint(w.T.Context(), agent)
	apptest.OK(w.T, err)
	return e
}

func TestAnEventIsDelivered(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterWithWebhook()
	id, err := w.Webhooks.Test(t.Context(), agent)
	apptest.OK(t, err)
	d := listDeliveries(w, agent)[0]
	if d.EventID != id || d.Status != webhook.Pending || d.Type != webhook.Test || !d.NextAttemptAt.Equal(w.Clock.Now()) {
		t.Errorf("the delivery is %+v", d)
	}
	w.Clock.Advance(time.Second)
	apptest.OK(t, runDeliveries(w))
	got := w.Receiver.Take()
	if len(got) != 1 || got[0].URL != apptest.WebhookURL || got[0].ID != id || !got[0].At.Equal(w.Clock.Now()) ||
		len(got[0].Secrets) != 1 || got[0].Secrets[0] != w.Secrets.WebhookSecret(agent, 1) {
		t.Fatalf("received %+v", got)
	}
	apptest.Equal(t, "the body", string(got[0].Body), `{"type":"webhook.test","timestamp":"`+
		d.CreatedAt.Format("2006-01-02T15:04:05.000Z07:00")+`","data":{"agent_id":"`+agent+`"}}`)
	d = listDeliveries(w, agent)[0]
	if d.Status != webhook.Delivered || d.Attempts != 1 || d.LastStatusCode != 204 || d.LastError != "" || !d.NextAttemptAt.IsZero() {
		t.Errorf("the delivery is %+v", d)
	}
	apptest.Equal(t, "jobs", len(deliveryJobs(w)), 0)
	if e := readEndpoint(w, agent); !e.LastDeliveryAt.Equal(w.Clock.Now()) || e.State() != webhook.Enabled {
		t.Errorf("the endpoint is %+v", e)
	}
	apptest.OK(t, w.Webhooks.Deliver(t.Context(), d.ID, d.CreatedAt))
	apptest.Equal(t, "calls of a job that runs again", len(w.Receiver.Take()), 0)
	apptest.OK(t, w.Webhooks.Deliver(t.Context(), "dlv_none", d.CreatedAt))
}

func TestAFailureIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterWithWebhook()
	sendEvent(w, agent)
	w.Receiver.Answers = []webhook.Outcome{{StatusCode: 500}, {StatusCode: 429, RetryAfter: time.Hour}, {Err: "no answer"}}
	for i, pause := range []struct{ least, most time.Duration }{
		{4 * time.Second, 6 * time.Second}, {time.Hour, time.Hour}, {24 * time.Minute, 36 * time.Minute},
	} {
		apptest.OK(t, runDeliveries(w))
		d := listDeliveries(w, agent)[0]
		wait := d.NextAttemptAt.Sub(w.Clock.Now())
		if d.Status != webhook.Pending || d.Attempts != i+1 || d.LastError == "" || wait < pause.least || wait > pause.most {
			t.Fatalf("after %d failures: %+v, in %s", i+1, d, wait)
		}
		if jobs := deliveryJobs(w); len(jobs) != 1 || !jobs[0].due.Equal(d.NextAttemptAt) {
			t.Fatalf("the jobs are %+v", jobs)
		}
		early := w.Webhooks.Deliver(t.Context(), d.ID, d.NextAttemptAt)
		if later, is := errors.AsType[ports.RequeueAfter](early); !is || time.Duration(later) != wait {
			t.Errorf("too early: %v", early)
		}
		w.Clock.Set(d.NextAttemptAt)
	}
	apptest.OK(t, runDeliveries(w))
	got := w.Receiver.Take()
	apptest.Equal(t, "calls", len(got), 4)
	for _, m := range got {
		if m.ID != got[0].ID || string(m.Body) != string(got[0].Body) {
			t.Errorf("a repetition differs: %+v", m)
		}
	}
	apptest.Equal(t, "the status", listDeliveries(w, agent)[0].Status, webhook.Delivered)
}

// An internal error leaves the delivery as it is: the job fails and runs again.
func TestAFaultOfOursIsNoAttempt(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterWithWebhook()
	d := sendEvent(w, agent)
	w.Receiver.Err = errors.New("no sockets")
	if err := runDeliveries(w); !errors.Is(err, w.Receiver.Err) {
		t.Errorf("the job returns %v", err)
	}
	apptest.Equal(t, "the delivery", listDeliveries(w, agent)[0], d)
	w.Receiver.Err = nil
	w.Store.FailUpdates(1) // sent, and then the process dies
	apptest.ErrorIs(t, runDeliveries(w), apptest.ErrStore)
	apptest.Equal(t, "the delivery", listDeliveries(w, agent)[0], d)
	apptest.OK(t, runDeliveries(w))
	got := w.Receiver.Take()
	if len(got) != 2 || got[0].ID != got[1].ID {
		t.Errorf("received %+v", got)
	}
	apptest.Equal(t, "the status", listDeliveries(w, agent)[0].Status, webhook.Delivered)
}

func TestAnEndpointThatIsGoneIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterWithWebhook()
	w.Receiver.Respond(500)
	sendEvent(w, agent)
	apptest.OK(t, runDeliveries(w))
	w.Receiver.Respond(410)
	sendEvent(w, agent)
	apptest.OK(t, runDeliveries(w))
	if e := readEndpoint(w, agent); e.State() != webhook.Disabled || !e.DisabledAt.Equal(w.Clock.Now()) {
		t.Fatalf("the endpoint is %+v", e)
	}
	_, err := w.Webhooks.Test(t.Context(), agent)
	apptest.ErrorIs(t, err, webhook.ErrDisabled)
	_, err = w.Webhooks.Redeliver(t.Context(), agent, listDeliveries(w, agent)[0].ID)
	apptest.ErrorIs(t, err, webhook.ErrDisabled)
	t.Run("what waits is given up, and what happens meanwhile is listed only", func(t *testing.T) {
		w.Receiver.Take()
		jobs := len(deliveryJobs(w))
		w.Buy(agent, apptest.Local)
		apptest.Equal(t, "the newest at once", listDeliveries(w, agent)[0].Status, webhook.Failed)
		apptest.Equal(t, "its jobs", len(deliveryJobs(w)), jobs)
		w.Clock.Advance(time.Minute)
		apptest.OK(t, runDeliveries(w))
		apptest.Equal(t, "calls", len(w.Receiver.Take()), 0)
		apptest.Equal(t, "jobs", len(deliveryJobs(w)), 0)
		list := listDeliveries(w, agent)
		apptest.Equal(t, "deliveries", len(list), 3)
		for _, d := range list {
			if d.Status != webhook.Failed || d.LastError == "" {
				t.Errorf("the delivery is %+v", d)
			}
		}
		apptest.Equal(t, "the newest", list[0].Type, webhook.SessionActive)
	})
	t.Run("another name enables nothing, the URL does, the same too", func(t *testing.T) {
		_, err := w.Accounts.Update(t.Context(), accounts.Update{AgentID: agent, Update: account.Update{Name: new("other")}})
		apptest.OK(t, err)
		apptest.Equal(t, "the state", readEndpoint(w, agent).State(), webhook.Disabled)
		apptest.Equal(t, "the secret", setWebhookURL(w, agent, apptest.WebhookURL).WebhookSecret, "")
		apptest.Equal(t, "the state", readEndpoint(w, agent).State(), webhook.Enabled)
	})
	t.Run("what failed is delivered when asked for", func(t *testing.T) {
		d, err := w.Webhooks.Redeliver(t.Context(), agent, listDeliveries(w, agent)[0].ID)
		apptest.OK(t, err)
		if d.Status != webhook.Pending || !d.NextAttemptAt.Equal(w.Clock.Now()) {
			t.Errorf("the delivery is %+v", d)
		}
		apptest.OK(t, runDeliveries(w))
		got := w.Receiver.Take()
		if len(got) != 1 || got[0].ID != d.EventID {
			t.Errorf("received %+v", got)
		}
		apptest.Equal(t, "the status", listDeliveries(w, agent)[0].Status, webhook.Delivered)
	})
}

func TestFiveDaysOfFailuresDisable(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterWithWebhook()
	start := w.Clock.Now()
	w.Receiver.StatusCode = 503
	for readEndpoint(w, agent).State() == webhook.Enabled {
		if w.Clock.Now().Sub(start) > 6*session.Day {
			t.Fatal("six days of failures disable nothing")
		}
		sendEvent(w, agent)
		apptest.OK(t, runDeliveries(w))
		w.Clock.Advance(12 * time.Hour)
	}
	if took := readEndpoint(w, agent).DisabledAt.Sub(start); took != 5*session.Day {
		t.Errorf("disabled after %s", took)
	}
}

func TestTheURLIsTheOneOfTheMoment(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterWithWebhook()
	sendEvent(w, agent)
	setWebhookURL(w, agent, "https://example.org/new")
	apptest.OK(t, runDeliveries(w))
	apptest.Equal(t, "the URL", w.Receiver.Take()[0].URL, "https://example.org/new")
	sendEvent(w, agent)
	setWebhookURL(w, agent, "")
	apptest.OK(t, runDeliveries(w))
	apptest.Equal(t, "calls without a URL", len(w.Receiver.Take()), 0)
	apptest.Equal(t, "the status", listDeliveries(w, agent)[0].Status, webhook.Failed)
	_, err := w.Webhooks.Test(t.Context(), agent)
	apptest.ErrorIs(t, err, webhook.ErrNoEndpoint)
	_, _, err = w.Webhooks.RotateSecret(t.Context(), agent)
	apptest.ErrorIs(t, err, webhook.ErrNoEndpoint)
}

func TestASecretIsRotated(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	apptest.Equal(t, "the hint", readEndpoint(w, agent).SecretHint, "")
	first := setWebhookURL(w, agent, apptest.WebhookURL).WebhookSecret
	apptest.Equal(t, "the first", first, w.Secrets.WebhookSecret(agent, 1))
	apptest.Equal(t, "the hint", readEndpoint(w, agent).SecretHint, first[len(first)-4:])
	notified := &apptest.ChangeRecorder{}
	w.Watch(notified)
	second, at, err := w.Webhooks.RotateSecret(t.Context(), agent)
	apptest.OK(t, err)
	apptest.Equal(t, "notified", notified.Take(), "agent "+agent)
	apptest.Equal(t, "the second", second, w.Secrets.WebhookSecret(agent, 2))
	apptest.Equal(t, "rotated at", at, w.Clock.Now())
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{0, second + " " + first}, {24*time.Hour - 1000, second + " " + first}, {1000, second}} {
		w.Clock.Advance(c.after)
		sendEvent(w, agent)
		apptest.OK(t, runDeliveries(w))
		got := ""
		for i, s := range w.Receiver.Take()[0].Secrets {
			if i > 0 {
				got += " "
			}
			got += s
		}
		apptest.Equal(t, "the secrets", got, c.want)
	}
	apptest.Equal(t, "the secret of another URL", setWebhookURL(w, agent, "https://example.org/").WebhookSecret, "")
}

func TestRedeliver(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent, other := w.RegisterWithWebhook(), w.RegisterWithWebhook()
	d := sendEvent(w, agent)
	_, err := w.Webhooks.Redeliver(t.Context(), other, d.ID)
	apptest.ErrorIs(t, err, webhook.ErrNotFound)
	_, err = w.Webhooks.Redeliver(t.Context(), agent, "dlv_none")
	apptest.ErrorIs(t, err, webhook.ErrNotFound)
	t.Run("one that waits is due at once, and its old job does nothing", func(t *testing.T) {
		w.Receiver.Respond(500)
		apptest.OK(t, runDeliveries(w))
		old := listDeliveries(w, agent)[0]
		w.Clock.Advance(time.Second)
		got, err := w.Webhooks.Redeliver(t.Context(), agent, d.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "due", got.NextAttemptAt, w.Clock.Now())
		apptest.OK(t, runDeliveries(w))
		apptest.Equal(t, "calls", len(w.Receiver.Take()), 2)
		w.Clock.Advance(time.Minute)
		apptest.OK(t, w.Webhooks.Deliver(t.Context(), d.ID, old.NextAttemptAt))
		apptest.Equal(t, "calls of the old job", len(w.Receiver.Take()), 0)
	})
	t.Run("one that was delivered is sent again under its ids", func(t *testing.T) {
		_, err := w.Webhooks.Redeliver(t.Context(), agent, d.ID)
		apptest.OK(t, err)
		deleteDeliveryJobs(w)
		apptest.OK(t, w.Webhooks.Deliver(t.Context(), d.ID, w.Clock.Now()))
		apptest.Equal(t, "the event", w.Receiver.Take()[0].ID, d.EventID)
		apptest.Equal(t, "the attempts", listDeliveries(w, agent)[0].Attempts, 3)
	})
	t.Run("lists are filtered by status", func(t *testing.T) {
		sendEvent(w, agent)
		for status, n := range map[webhook.Status]int{"": 2, webhook.Pending: 1, webhook.Delivered: 1, webhook.Failed: 0} {
			list, err := w.Webhooks.Deliveries(t.Context(), agent, status, domain.Page{Number: 1, Size: 20})
			apptest.OK(t, err)
			apptest.Equal(t, "listed "+string(status), list.Total, n)
		}
		_, err := w.Webhooks.Deliveries(t.Context(), agent, "lost", domain.Page{Number: 1, Size: 20})
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	})
}

func deleteDeliveryJobs(w *apptest.World) {
	w.Exec(`DELETE FROM test_jobs WHERE kind = ?`, ports.DeliverJob)
}

func TestLostJobsAreStoredAgain(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterWithWebhook()
	for range 3 {
		sendEvent(w, agent)
	}
	deleteDeliveryJobs(w)
	w.Clock.Advance(5 * time.Minute)
	apptest.OK(t, w.Webhooks.Sweep(t.Context()))
	apptest.Equal(t, "jobs after five minutes", len(deliveryJobs(w)), 0)
	w.Clock.Advance(time.Microsecond)
	apptest.OK(t, w.Webhooks.Sweep(t.Context()))
	apptest.Equal(t, "jobs after more", len(deliveryJobs(w)), 3)
	t.Run("at the start all that is due begins anew, and the old jobs do nothing", func(t *testing.T) {
		old := deliveryJobs(w)
		apptest.OK(t, w.Webhooks.Recover(t.Context()))
		apptest.Equal(t, "jobs", len(deliveryJobs(w)), 6)
		for _, j := range old {
			apptest.OK(t, w.Webhooks.Deliver(t.Context(), j.id, j.due))
		}
		apptest.Equal(t, "calls of the old ones", len(w.Receiver.Take()), 0)
		apptest.OK(t, runDeliveries(w))
		apptest.Equal(t, "calls", len(w.Receiver.Take()), 3)
	})
}

// One receiver that never answers has four deliveries on their way; the others
// are put aside, and another agent's is not late.
func TestASlowReceiverDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	slow, agent := w.RegisterWithWebhook(), w.RegisterWithWebhook()
	setWebhookURL(w, slow, apptest.SlowWebhookURL)
	prove(w, slow)
	w.Receiver.Hold = make(chan struct{})
	for range 40 {
		sendEvent(w, slow)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var waits []time.Duration
	for _, j := range deliveryJobs(w) {
		wg.Go(func() {
			err := w.Webhooks.Deliver(t.Context(), j.id, j.due)
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
	d := sendEvent(w, agent)
	apptest.OK(t, w.Webhooks.Deliver(t.Context(), d.ID, d.NextAttemptAt))
	apptest.Equal(t, "the other agent's", listDeliveries(w, agent)[0].Status, webhook.Delivered)
	close(w.Receiver.Hold)
	wg.Wait()
	apptest.Equal(t, "at once", w.Receiver.MaxConcurrent, 4)
	list, err := w.Webhooks.Deliveries(t.Context(), slow, webhook.Delivered, domain.Page{Number: 1, Size: 100})
	apptest.OK(t, err)
	apptest.Equal(t, "delivered in the end", list.Total, 5)
}

// A receiver that is quick takes all that there is, four at a time.
func TestAQuickReceiverIsNotHeldUp(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterWithWebhook()
	prove(w, agent)
	for range 20 {
		sendEvent(w, agent)
	}
	var wg sync.WaitGroup
	faults := make(chan error, 20)
	for _, j := range deliveryJobs(w) {
		wg.Go(func() {
			for { // where the machine is slow a slot may take longer than a delivery waits for one
				err := w.Webhooks.Deliver(t.Context(), j.id, j.due)
				if _, later := errors.AsType[ports.RequeueAfter](err); !later {
					faults <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(faults)
	for err := range faults {
		apptest.OK(t, err)
	}
	apptest.Equal(t, "calls", len(w.Receiver.Take()), 20)
}
