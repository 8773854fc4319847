package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/webhook"
	"agentproxy/app/accounts"
	"agentproxy/app/webhooks"
	"agentproxy/domain"
	"agentproxy/domain/account"
	hooks "agentproxy/domain/webhook"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// tarpitURL returns the URL of a host of its own: one host has few tries of all agents together.
func tarpitURL(n int) string { return fmt.Sprintf("https://tarpit%d.example/hook", n) }

// tarpit is a sender whose calls of a tarpitURL take until they are let go, and fail then.
type tarpit struct {
	entered chan struct{}
	letGo   chan struct{}
}

func (*tarpit) Body(e hooks.Event) []byte { return webhook.Body(e) }

func (s *tarpit) Send(_ context.Context, m ports.Message) (hooks.Outcome, error) {
	if !strings.HasPrefix(m.URL, "https://tarpit") {
		return hooks.Outcome{URL: m.URL, StatusCode: 204}, nil
	}
	s.entered <- struct{}{}
	<-s.letGo
	return hooks.Outcome{URL: m.URL, Err: "the endpoint did not answer"}, nil
}

// attempts runs deliveries as the deliverers of a queue do, which are as many as are blocked.
type attempts struct {
	*apptest.World
	sender  *tarpit
	service *webhooks.Service
	blocked chan error // results of attempts that were blocked
	served  []string   // agents whose attempts are blocked, in their order
}

func openAttempts(t *testing.T) *attempts {
	w := apptest.New(t)
	s := &tarpit{entered: make(chan struct{}), letGo: make(chan struct{})}
	return &attempts{World: w, sender: s, blocked: make(chan error, 1000),
		service: webhooks.New(w.Store, w.Clock, w.IDs, w.Secrets, s, w.Hub, slog.New(slog.DiscardHandler))}
}

// run begins an attempt and reports whether it is blocked, or how long it was requeued for.
func (a *attempts) run(agent string, j try) (blocked bool, wait time.Duration) {
	a.T.Helper()
	done := make(chan error, 1)
	go func() { done <- a.service.Deliver(context.Background(), j.id, j.due) }()
	select {
	case <-a.sender.entered:
		a.served = append(a.served, agent)
		go func() { a.blocked <- <-done }()
		return true, 0
	case err := <-done:
		if later, requeued := errors.AsType[ports.RequeueAfter](err); requeued {
			return false, time.Duration(later)
		}
		apptest.OK(a.T, err)
		return false, 0
	}
}

// finish lets the blocked attempts go and waits for their end.
func (a *attempts) finish() {
	a.T.Helper()
	close(a.sender.letGo)
	for range a.served {
		apptest.OK(a.T, <-a.blocked)
	}
	a.sender.letGo, a.served = make(chan struct{}), nil
}

// pending lists the jobs of the agents' deliveries that are due, by agent.
func (a *attempts) pending(agents []string) map[string][]try {
	jobs := map[string][]try{}
	due := map[try]string{}
	for _, agent := range agents {
		for _, d := range listDeliveries(a.World, agent) {
			if d.Status == hooks.Pending && !d.NextAttemptAt.After(a.Clock.Now()) {
				due[try{id: d.ID, due: d.NextAttemptAt}] = agent
			}
		}
	}
	for _, j := range deliveryJobs(a.World) {
		if agent, ok := due[try{id: j.id, due: j.due}]; ok {
			jobs[agent] = append(jobs[agent], j)
		}
	}
	return jobs
}

// notify causes events of an agent.
func (a *attempts) notify(agent string, n int) {
	a.T.Helper()
	for range n {
		_, _, err := a.Accounts.RotateSecret(context.Background(), accounts.Caller{AgentID: agent}, "")
		apptest.OK(a.T, err)
	}
}

func TestTarpitsDelayNoOther(t *testing.T) {
	t.Parallel()
	a := openAttempts(t)
	victim := a.RegisterWithWebhook()
	a.notify(victim, 1)
	for _, j := range a.pending([]string{victim})[victim] {
		a.run(victim, j)
	}
	agents := make([]string, 150)
	for i := range agents {
		agents[i] = a.RegisterWithWebhook()
		setWebhookURL(a.World, agents[i], tarpitURL(i))
		a.notify(agents[i], 2)
	}
	a.notify(victim, 10)

	jobs := a.pending(append(agents, victim))
	begin := func(agents []string) {
		t.Helper()
		seen := map[string]bool{}
		for _, agent := range a.served {
			seen[agent] = true
		}
		for _, agent := range agents {
			for _, j := range jobs[agent] {
				blocked, wait := a.run(agent, j)
				if blocked && seen[agent] {
					t.Errorf("%s has two attempts at once", agent)
				}
				if seen[agent] = seen[agent] || blocked; !blocked && (wait < time.Second || wait > time.Minute) {
					t.Errorf("%s is requeued for %v", agent, wait)
				}
			}
		}
	}
	begin(agents)
	apptest.Equal(t, "deliverers of tarpits, of 128", len(a.served), 64)
	for i, j := range jobs[victim] {
		if blocked, wait := a.run(victim, j); blocked || wait != 0 {
			t.Errorf("delivery %d of the victim: blocked %v, requeued for %v", i, blocked, wait)
		}
	}
	apptest.Equal(t, "pending deliveries of the victim", len(a.pending([]string{victim})[victim]), 0)

	// Every tarpit has its turn before one has a second, although the first ones ask first.
	first := a.served
	a.finish()
	a.Clock.Advance(time.Second)
	jobs = a.pending(agents)
	begin(agents)
	apptest.Equal(t, "served next", fmt.Sprint(a.served), fmt.Sprint(agents[64:128]))
	apptest.Equal(t, "served first", fmt.Sprint(first), fmt.Sprint(agents[:64]))
	a.finish()
	a.Clock.Advance(time.Second)
	jobs = a.pending(agents)
	begin(agents)
	for _, agent := range agents[128:] {
		if !slices.Contains(a.served, agent) {
			t.Errorf("%s has had no turn when others have a second one", agent)
		}
	}
	a.finish()
}

// An agent that does not ask again loses its place.
func TestAPlaceInTheLineIsKeptForTenSeconds(t *testing.T) {
	t.Parallel()
	a := openAttempts(t)
	agents := make([]string, 130)
	for i := range agents {
		agents[i] = a.RegisterWithWebhook()
		setWebhookURL(a.World, agents[i], tarpitURL(i))
		a.notify(agents[i], 1)
	}
	jobs := a.pending(agents)
	for _, agent := range agents {
		a.run(agent, jobs[agent][0])
	}
	apptest.Equal(t, "served", len(a.served), 64)
	a.finish()
	last := agents[129]
	if blocked, wait := a.run(last, jobs[last][0]); blocked || wait == 0 {
		t.Errorf("the last of 66 is served before the others: %v, %v", blocked, wait)
	}
	a.Clock.Advance(10*time.Second + time.Microsecond)
	if blocked, _ := a.run(last, jobs[last][0]); !blocked {
		t.Error("the last one waits for agents that do not ask")
	}
	a.finish()
}

// refusing is a sender whose endpoint answers 500 until it works.
type refusing struct {
	sent  int
	works bool
}

func (*refusing) Body(e hooks.Event) []byte { return webhook.Body(e) }

func (s *refusing) Send(_ context.Context, m ports.Message) (hooks.Outcome, error) {
	s.sent++
	if s.works {
		return hooks.Outcome{URL: m.URL, StatusCode: 204}, nil
	}
	return hooks.Outcome{URL: m.URL, StatusCode: 500}, nil
}

// storm opens an agent whose endpoint fails until it works, and causes events. round attempts what is due and
// demands that the rest is requeued, for no longer than most.
func storm(t *testing.T, answered bool, most time.Duration) (a *attempts, s *refusing, round func() (left int)) {
	t.Helper()
	a, s = openAttempts(t), &refusing{works: answered}
	a.service = webhooks.New(a.Store, a.Clock, a.IDs, a.Secrets, s, a.Hub, slog.New(slog.DiscardHandler))
	agent := a.RegisterWithWebhook()
	round = func() int {
		t.Helper()
		for _, j := range a.pending([]string{agent})[agent] {
			err := a.service.Deliver(t.Context(), j.id, j.due)
			if later, requeued := errors.AsType[ports.RequeueAfter](err); requeued && later > 0 && time.Duration(later) <= most {
				continue
			}
			apptest.OK(t, err)
		}
		return len(a.pending([]string{agent})[agent])
	}
	if answered {
		a.notify(agent, 1)
		round()
	}
	*s = refusing{}
	a.notify(agent, 40)
	return a, s, round
}

// One who names an address that is not his own has it sent ten requests an hour and no storm: 624
// events were 1,203 requests within 12 seconds. Once it answers, it gets all at once.
func TestAnEndpointThatNeverAnsweredGetsNoStorm(t *testing.T) {
	t.Parallel()
	a, s, round := storm(t, false, 6*time.Minute)
	for range 12 {
		round()
		a.Clock.Advance(time.Second)
	}
	apptest.Equal(t, "requests within 12 seconds", s.sent, 10)
	for range 10 {
		a.Clock.Advance(6 * time.Minute)
		round()
	}
	apptest.Equal(t, "and within an hour more", s.sent, 20)
	s.works = true
	a.Clock.Advance(6 * time.Minute)
	apptest.Equal(t, "what waits once it answers", round(), 0)
}

// One that has answered before is tried ten times a minute.
func TestAnEndpointThatFailsGetsTenAttemptsAMinute(t *testing.T) {
	t.Parallel()
	a, s, round := storm(t, true, time.Minute)
	for range 12 {
		round()
		a.Clock.Advance(time.Second)
	}
	apptest.Equal(t, "requests within 12 seconds, with the one that shows that it fails", s.sent, 12)
	s.works = true
	apptest.Equal(t, "what waits once it works", round(), 0)
}

func TestTestEventsAreLimited(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent, other := w.RegisterWithWebhook(), w.RegisterWithWebhook()
	for range 10 {
		_, err := w.Webhooks.Test(t.Context(), agent)
		apptest.OK(t, err)
	}
	before := w.Dump()
	_, err := w.Webhooks.Test(t.Context(), agent)
	apptest.ErrorIs(t, err, account.ErrRateLimited)
	if refusal, _ := errors.AsType[*domain.Error](err); refusal.RetryAfter != 6*time.Minute {
		t.Errorf("retry after %v", refusal.RetryAfter)
	}
	apptest.Equal(t, "the database", w.Dump(), before)
	_, err = w.Webhooks.Test(t.Context(), other)
	apptest.OK(t, err)
	w.Clock.Advance(6 * time.Minute)
	_, err = w.Webhooks.Test(t.Context(), agent)
	apptest.OK(t, err)
}

func TestPendingDeliveriesAreBounded(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterWithWebhook()
	notify := func() hooks.Delivery {
		t.Helper()
		_, _, err := w.Accounts.RotateSecret(t.Context(), accounts.Caller{AgentID: agent}, "")
		apptest.OK(t, err)
		return listDeliveries(w, agent)[0]
	}
	for range hooks.MaxPending - 1 {
		_, _, err := w.Accounts.RotateSecret(t.Context(), accounts.Caller{AgentID: agent}, "")
		apptest.OK(t, err)
	}
	apptest.Equal(t, "the last that fits", notify().Status, hooks.Pending)
	jobs := len(deliveryJobs(w))
	refused := notify()
	apptest.Equal(t, "one more", refused.Status, hooks.Failed)
	apptest.Equal(t, "its jobs", len(deliveryJobs(w)), jobs)
	_, err := w.Webhooks.Redeliver(t.Context(), agent, refused.ID)
	apptest.ErrorIs(t, err, hooks.ErrPending)
	apptest.Equal(t, "another agent's", func() hooks.Status {
		other := w.RegisterWithWebhook()
		_, _, err := w.Accounts.RotateSecret(t.Context(), accounts.Caller{AgentID: other}, "")
		apptest.OK(t, err)
		return listDeliveries(w, other)[0].Status
	}(), hooks.Pending)
}
