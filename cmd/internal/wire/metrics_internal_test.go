package wire

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/domain/ratelimit"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// answers is a sender whose receivers answer with a status, or not.
type answers struct {
	ports.Sender
	status int
	err    error
}

func (a *answers) Send(context.Context, ports.Message) (webhook.Outcome, error) {
	return webhook.Outcome{StatusCode: a.status}, a.err
}

func TestDeliveriesAreMeasuredByTheClassOfTheirAnswer(t *testing.T) {
	registry := prometheus.NewRegistry()
	to := &answers{}
	s, err := newTimedSender(to, nil, registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []answers{{status: 204}, {status: 200}, {status: 503}, {status: 0}, {status: 200, err: errors.New("stopped")}} {
		*to = a
		if got, err := s.Send(t.Context(), ports.Message{}); got.StatusCode != a.status || !errors.Is(err, a.err) {
			t.Errorf("%+v was changed to %+v, %v", a, got, err)
		}
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "agentproxy_webhook_seconds" {
		t.Fatalf("%v, %v", families, err)
	}
	counts := map[string]uint64{}
	for _, m := range families[0].GetMetric() {
		counts[m.GetLabel()[0].GetValue()] = m.GetHistogram().GetSampleCount()
	}
	if len(counts) != 3 || counts["2xx"] != 2 || counts["5xx"] != 1 || counts["none"] != 2 {
		t.Errorf("%v", counts)
	}
}

// away is a store of limits that answers or fails.
type away struct {
	ports.RateLimits
	err error
}

func (a *away) Take(context.Context, string, ratelimit.Request) (ratelimit.Grant, error) {
	return ratelimit.Grant{Tokens: 3}, a.err
}

func TestCallsOfTheStoreOfLimitsAreCounted(t *testing.T) {
	registry, store := prometheus.NewRegistry(), &away{}
	limits, err := countLimits(store, registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{nil, errors.New("no connection"), errors.New("no connection")} {
		store.err = err
		if g, got := limits.Take(t.Context(), "a", ratelimit.Request{}); g.Tokens != 3 || !errors.Is(got, err) {
			t.Errorf("%+v, %v", g, got)
		}
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "agentproxy_ratelimit_store_calls_total" {
		t.Fatalf("%v, %v", families, err)
	}
	counts := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		counts[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	if counts["ok"] != 1 || counts["failed"] != 2 {
		t.Errorf("%v", counts)
	}
	if none, err := countLimits(nil, prometheus.NewRegistry()); none != nil || err != nil {
		t.Errorf("without a store: %v, %v", none, err)
	}
	if alone, err := countLimits(store, nil); alone != ports.RateLimits(store) || err != nil {
		t.Errorf("without a registry: %v, %v", alone, err)
	}
}
