package wire

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

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
