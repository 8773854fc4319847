package e2e_test

import (
	"strings"
	"testing"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/natstest"
)

// Reports go through NATS and are counted once over a kill of the program. While NATS is away they are
// refused, and everything else works.
func TestReportsGoThroughNATS(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	s := serve(t, "AGENTPROXY_TELEMETRY_URL="+strings.Replace(server.URL(), "nats://", "nats://someone:secret-of-nats@", 1))
	key, _ := s.register("reporter")
	buy := func() string {
		var d apiclient.Session
		s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":1}}`).into(t, &d)
		return d.SessionID
	}
	id := buy()
	report := func(status int) reply {
		return s.must(status, "POST", "/sessions/"+id+"/report-event", key, `{"event_type":"block"}`)
	}
	report(200)
	s.kill()
	s.start()
	report(200)
	within(t, soon, "both are in the feed", func() bool { return len(s.events(key, id)) == 2 })
	s.shows(`agentproxy_telemetry_queue_calls_total{result="stored"} 1`, `agentproxy_telemetry_queue_parked_total 0`)

	server.Stop()
	if r := report(503); r.code() != "SERVICE_UNAVAILABLE" || r.header.Get("Retry-After") == "" {
		t.Errorf("without NATS: %s", r.body)
	}
	buy()
	within(t, soon, "readiness shows it", func() bool {
		status, text := s.page("/readyz")
		return status == 200 && strings.Contains(text, "telemetry queue ok: away; reports are answered 503\n")
	})
	server.Run()
	within(t, soon, "it is back", func() bool {
		r, err := s.call(t.Context(), "POST", "/sessions/"+id+"/report-event", key, `{"event_type":"success"}`)
		return err == nil && r.status == 200
	})
	s.logs("telemetry queue is away")
	if log := s.log.String(); strings.Contains(log, "secret-of-nats") {
		t.Errorf("the log is\n%s", log)
	}
}
