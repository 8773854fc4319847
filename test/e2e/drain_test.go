package e2e_test

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// A replica that is to stop is not ready first, and takes new connections until the drain delay is over: the longest
// there is, which is longer than this test, and then the shortest.
func TestAReplicaThatStopsIsNotReadyBeforeItsListenersClose(t *testing.T) {
	t.Parallel()
	s := serve(t, "AGENTPROXY_DRAIN_DELAY_SECONDS=300")
	within(t, soon, "it is ready", func() bool { status, _ := s.page("/readyz"); return status == 200 })
	ok(t, s.cmd.Process.Signal(syscall.SIGTERM))
	within(t, soon, "it is not ready", func() bool {
		status, body := s.page("/readyz")
		return status == 503 && strings.Contains(body, "service failed: stopping")
	})
	anew := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 10 { // a listener that closed at once would be gone by the last
		resp, err := anew.Get("http://" + s.api + "/v1/health")
		if err != nil {
			t.Fatalf("a new call while balancers still send some: %v", err)
		}
		resp.Body.Close()
		conn, err := net.Dial("tcp", s.gateway)
		if err != nil {
			t.Fatalf("a new tunnel while balancers still send some: %v", err)
		}
		conn.Close()
	}
	s.kill()
	s.setEnv("AGENTPROXY_DRAIN_DELAY_SECONDS", "1")
	s.start()
	s.stop()
	if out := s.log.String(); !strings.Contains(out, "the listeners close after the drain delay") {
		t.Errorf("it printed:\n%s", out)
	}
}
