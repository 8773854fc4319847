package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"agentproxy/adapters/webhook"
	"agentproxy/app/webhooks"
	"agentproxy/domain"
	hooks "agentproxy/domain/webhook"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// counting is a sender that notes when it was asked for a URL, and answers by a function.
type counting struct {
	clock  interface{ Now() time.Time }
	answer func(m ports.Message) int
	at     map[string][]time.Time
}

func (*counting) Body(e hooks.Event) []byte { return webhook.Body(e) }

func (s *counting) Send(_ context.Context, m ports.Message) (hooks.Outcome, error) {
	s.at[m.URL] = append(s.at[m.URL], s.clock.Now())
	return hooks.Outcome{URL: m.URL, StatusCode: s.answer(m)}, nil
}

// hosts opens a world whose webhooks are answered by a function.
func hosts(t *testing.T, answer func(m ports.Message) int) (*attempts, *counting) {
	a := openAttempts(t)
	s := &counting{clock: a.Clock, answer: answer, at: map[string][]time.Time{}}
	a.service = webhooks.New(a.Store, a.Clock, a.IDs, a.Secrets, s, a.Hub, slog.New(slog.DiscardHandler))
	return a, s
}

// round attempts all that is due, and goes on by some time.
func (a *attempts) round(agents []string, by time.Duration) {
	a.T.Helper()
	for _, jobs := range a.pending(agents) {
		for _, j := range jobs {
			if err := a.service.Deliver(a.T.Context(), j.id, j.due); err != nil {
				if _, requeued := errors.AsType[ports.RequeueAfter](err); !requeued {
					a.T.Fatal(err)
				}
			}
		}
	}
	a.Clock.Advance(by)
}

// mostInAnHour returns the largest number of times within any hour.
func mostInAnHour(at []time.Time) (most int) {
	for i := range at {
		n := 0
		for _, other := range at[i:] {
			if other.Sub(at[i]) < time.Hour {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// Two hundred accounts that ask for eleven tests each at one host, which answers 404, make thirty requests an hour of
// it; a host that answers gets its events at once meanwhile.
func TestManyAccountsMakeNoStormAtOneHost(t *testing.T) {
	t.Parallel()
	a, s := hosts(t, func(m ports.Message) int {
		if m.URL == apptest.WebhookURL {
			return 204
		}
		return 404
	})
	agents := make([]string, 200)
	for i := range agents {
		agents[i] = a.RegisterWithWebhook()
		setWebhookURL(a.World, agents[i], fmt.Sprintf("https://Victim.example:%d/%d", 8000+i%3, i))
		for range 11 {
			_, _ = a.service.Test(t.Context(), agents[i]) // the eleventh is refused
		}
	}
	for range 3 * 6 {
		a.round(agents, 10*time.Minute)
	}
	var all []time.Time
	for url, at := range s.at {
		if url != apptest.WebhookURL {
			all = append(all, at...)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	if most := mostInAnHour(all); most > 30 || len(all) < 30 {
		t.Errorf("%d requests within an hour, %d in three", most, len(all))
	}
	customer := a.RegisterWithWebhook()
	a.notify(customer, 40)
	a.round([]string{customer}, 0)
	for range 40 { // its first event is alone
		a.round([]string{customer}, time.Second)
	}
	apptest.Equal(t, "of a customer elsewhere", len(s.at[apptest.WebhookURL]), 40)
}

// A customer whose host fails for a while has its events tried by their own schedule, whatever strangers make of its
// host, and gets them once it works again.
func TestACustomersHostRecovers(t *testing.T) {
	t.Parallel()
	works := true
	a, s := hosts(t, func(m ports.Message) int {
		if m.URL == apptest.WebhookURL && works {
			return 204
		}
		return 500
	})
	customer := a.RegisterWithWebhook()
	a.notify(customer, 1)
	a.round([]string{customer}, time.Second)
	works = false
	agents := make([]string, 20)
	for i := range agents {
		agents[i] = a.RegisterWithWebhook()
		setWebhookURL(a.World, agents[i], fmt.Sprintf("https://example.com/stranger%d", i)) // the host of the customer
		a.notify(agents[i], 3)
	}
	for range 6 {
		a.round(agents, time.Minute)
	}
	before := len(s.at[apptest.WebhookURL])
	a.notify(customer, 2)
	a.round([]string{customer}, 10*time.Second)
	a.round([]string{customer}, 10*time.Second)
	if n := len(s.at[apptest.WebhookURL]) - before; n < 2 {
		t.Errorf("%d tries of a customer whose host has failed for a moment", n)
	}
	works = true
	for range 12 {
		a.round([]string{customer}, 10*time.Minute)
	}
	for _, d := range listDeliveries(a.World, customer) {
		apptest.Equal(t, "delivery", d.Status, hooks.Delivered)
	}
}

// An account without money has nothing sent to a host that never answered, and all once it has money.
func TestAnAccountWithoutMoneyReachesNoStranger(t *testing.T) {
	t.Parallel()
	a, s := hosts(t, func(ports.Message) int { return 204 })
	agent := a.RegisterWithWebhook()
	_, err := a.Wallet.Adjust(t.Context(), agent, -10*domain.Dollar, "for the test")
	apptest.OK(t, err)
	a.notify(agent, 1)
	a.round([]string{agent}, time.Minute)
	apptest.Equal(t, "without money", len(s.at[apptest.WebhookURL]), 0)
	_, err = a.Wallet.Adjust(t.Context(), agent, 1, "for the test")
	apptest.OK(t, err)
	a.round([]string{agent}, time.Minute)
	apptest.Equal(t, "with money", len(s.at[apptest.WebhookURL]) > 0, true)
}
