package e2e_test

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A replica that is to stop is not ready first, and takes new connections until the drain delay is over.
func TestAReplicaThatStopsIsNotReadyBeforeItsListenersClose(t *testing.T) {
	t.Parallel()
	const delay = 3 * time.Second
	s := serve(t, "AGENTPROXY_DRAIN_DELAY_SECONDS=3")
	within(t, soon, "it is ready", func() bool { status, _ := s.page("/readyz"); return status == 200 })
	began := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	within(t, soon, "it is not ready", func() bool {
		status, body := s.page("/readyz")
		return status == 503 && strings.Contains(body, "service failed: stopping")
	})
	anew := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 10 { // a listener that closed at once would be gone by the last
		resp, err := anew.Get("http://" + s.api + "/v1/health")
		if time.Since(began) >= delay { // this machine has too much to do
			break
		}
		if err != nil {
			t.Fatalf("a new call while balancers still send some: %v", err)
		}
		resp.Body.Close()
		conn, err := net.Dial("tcp", s.gateway)
		if time.Since(began) >= delay {
			break
		}
		if err != nil {
			t.Fatalf("a new tunnel while balancers still send some: %v", err)
		}
		conn.Close()
		time.Sleep(50 * time.Millisecond)
	}
	within(t, soon, "the listener closes", func() bool {
		resp, err := anew.Get("http://" + s.api + "/v1/health")
		if err == nil {
			resp.Body.Close()
		}
		return err != nil
	})
	if out := s.log.String(); !strings.Contains(out, "the listeners close after the drain delay") {
		t.Errorf("it printed:\n%s", out)
	}
}
