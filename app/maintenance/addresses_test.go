package maintenance_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"agentproxy/app/maintenance"
	"agentproxy/app/sessions"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// A static address that is gone from this host ends its session after an hour, with its unused days given back, and is
// not renewed meanwhile. One that comes back does not.
func TestALostAddressOfThisHostEndsItsSession(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100)
	lost, kept := w.Buy(agent, apptest.Static), w.Buy(agent, apptest.Static)
	var log bytes.Buffer
	a := maintenance.NewAddresses(w.Store, w.Clock, w.Catalog, w.Transitions, w.Hub, slog.New(slog.NewTextHandler(&log, nil)))
	status := func(id string) string {
		s := w.Read(agent, id)
		return string(s.Status) + " " + string(s.Reason)
	}
	check := func() {
		t.Helper()
		apptest.OK(t, a.Check(t.Context()))
	}
	check()
	w.Clock.Advance(session.Day)
	w.Unbind(lost.Exits[0].IP)
	check()
	before := w.Balance(agent)
	_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: lost.ID, Days: "30"})
	apptest.ErrorIs(t, err, ports.ErrProvider)
	apptest.Equal(t, "the balance", w.Balance(agent), before)
	w.Clock.Advance(time.Hour - time.Second)
	check()
	apptest.Equal(t, "within the hour", status(lost.ID), "active ")
	w.Clock.Advance(time.Second)
	check()
	apptest.Equal(t, "after it", status(lost.ID), "terminated provider_lost")
	apptest.Equal(t, "what was given back", w.Balance(agent)-before, billing.UnusedDays(apptest.Dollars("1"), 30, 28))
	apptest.Equal(t, "the other", status(kept.ID), "active ")
	if n := strings.Count(log.String(), "sold address"); n != 1 || !strings.Contains(log.String(), lost.ID) {
		t.Errorf("the log is %s", log.String())
	}
	_, err = w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: kept.ID, Days: "30"})
	apptest.OK(t, err)
}
