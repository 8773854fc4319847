package nats_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	gonats "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"agentproxy/adapters/nats"
	"agentproxy/domain"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/contract"
	"agentproxy/test/natstest"
)

const beat = 100 * time.Millisecond

// long is more than any machine needs to store a call.
const long = 5 * time.Minute

// open returns the client of a replica. A call that its server does not take within attempt is refused.
func open(t *testing.T, server *natstest.Server, maxBytes int64, attempt time.Duration) *nats.Queue {
	t.Helper()
	q, err := nats.New(nats.Config{URL: server.URL(), Heartbeat: beat, Attempt: attempt, MaxBytes: maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	return q
}

func TestQueueKeepsTheContract(t *testing.T) {
	t.Parallel()
	contract.TelemetryQueue(t, func(t *testing.T) contract.QueueWorld {
		server := natstest.Start(t)
		return contract.QueueWorld{
			Open: func(attempt time.Duration) ports.TelemetryQueue { return open(t, server, 0, attempt) },
			Kill: func(q ports.TelemetryQueue) { q.(*nats.Queue).Close() },
			Stop: server.Stop, Run: server.Run}
	})
}

func TestAFullQueueRefusesUntilItIsFolded(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	q := open(t, server, 8<<10, long)
	call := []byte(`{"v":1,"agent":"agt_1","pad":"` + strings.Repeat("x", 1000) + `"}`)
	var err error
	stored := 0
	for ; err == nil && stored < 100; stored++ {
		_, err = q.Publish(t.Context(), "agt_1", call)
	}
	var refusal *domain.Error
	if !errors.Is(err, domain.ErrUnavailable) || !errors.As(err, &refusal) || refusal.RetryAfter == 0 || stored < 4 {
		t.Fatalf("after %d calls: %v", stored, err)
	}
	w := apptest.New(t)
	defer fold(q, w.Telemetry)()
	for err != nil {
		if _, err = q.Publish(t.Context(), "agt_1", call); err != nil && !errors.Is(err, domain.ErrUnavailable) {
			t.Fatal(err)
		}
	}
}

func TestWhatIsSetAsideIsKeptAndLogged(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	q := open(t, server, 0, long)
	registry := prometheus.NewRegistry()
	registry.MustRegister(q)
	w := apptest.New(t)
	defer fold(q, w.Telemetry)()
	for _, call := range []string{"no call", `{"v":2,"agent":"agt_1"}`} {
		place, err := q.Publish(t.Context(), "agt_1", []byte(call))
		apptest.OK(t, err)
		if !q.Folded(t.Context(), place) {
			t.Fatal("it is not folded")
		}
	}
	conn, err := gonats.Connect(server.URL())
	apptest.OK(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	apptest.OK(t, err)
	parked, err := js.Stream(t.Context(), "AGENTPROXY_TELEMETRY_PARKED")
	apptest.OK(t, err)
	m, err := parked.GetMsg(t.Context(), 1)
	apptest.OK(t, err)
	if string(m.Data) != "no call" || parked.CachedInfo().State.Msgs != 2 {
		t.Errorf("%d messages are parked, the first is %q", parked.CachedInfo().State.Msgs, m.Data)
	}
	apptest.OK(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP agentproxy_telemetry_queue_parked_total Messages that could not be folded and were set aside.
# TYPE agentproxy_telemetry_queue_parked_total counter
agentproxy_telemetry_queue_parked_total 2
`), "agentproxy_telemetry_queue_parked_total"))
}

func TestACallThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	q := open(t, natstest.Start(t), 0, long)
	if _, err := q.Publish(t.Context(), "agt_1", make([]byte, 1<<20)); !errors.Is(err, ports.ErrCallTooLarge) {
		t.Errorf("a call of 1 MiB: %v", err)
	}
}

func TestCheckRefusesWhatIsNoServer(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "localhost:4222", "http://secret@host", "nats://%zz:secret@host", "nats://host,", "nats:///secret"} {
		if err := nats.Check(url); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", url, err)
		}
		if _, err := nats.New(nats.Config{URL: url}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is accepted, or revealed: %v", url, err)
		}
	}
	for _, url := range []string{"nats://host", "tls://user:secret@host:4222", "nats://a,nats://b:4222,nats://c"} {
		if err := nats.Check(url); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
}
