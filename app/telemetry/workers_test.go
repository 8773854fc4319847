package telemetry_test

import (
	"strconv"
	"testing"

	"agentproxy/domain/health"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
)

// However many workers fleets have in use, there is room for what is seen of sessions.
func TestFleetsLeaveRoomForSessions(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	fleet, v := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Local)
	for i := range 100_000 {
		w.Observer.Observe(traffic.Observation{SessionID: fleet.ID, Worker: strconv.Itoa(i), At: w.Clock.Now(), Type: "request",
			Evidence: health.Success, Host: "example.com"})
	}
	w.Observe(v.ID, "example.com", health.Timeout)
	_, err := w.Telemetry.Report(t.Context(), agent, hosted(v.ID, "block", "example.com"))
	apptest.OK(t, err)
	if r, o, _ := eventTotals(w, agent, v.ID); r != 1 || o != 1 {
		t.Errorf("%d reported and %d observed, want one piece of both", r, o)
	}
}
