package telemetry_test

import (
	"fmt"
	"testing"
	"time"

	"agentproxy/app/telemetry"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
)

// wrongPassword is what the gateway observes of a wrong password of a user name.
func wrongPassword(w *apptest.World, id string) traffic.Observation {
	return traffic.Observation{SessionID: id, At: w.Clock.Now(), Type: traffic.AuthFailed, StatusCode: 407,
		Code: "PROXY_AUTH_REQUIRED", HowToFix: "use the password of the session"}
}

func TestWrongPasswordsAreInTheFeed(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterFunded(50)
	v, ended := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Local)
	before := len(events(t, w, agent, v.ID))
	_, err := w.Sessions.Terminate(t.Context(), agent, ended.ID)
	apptest.OK(t, err)
	atEnd := len(events(t, w, agent, ended.ID))
	for range 3 {
		w.Observer.Observe(wrongPassword(w, v.ID))
		w.Observer.Observe(wrongPassword(w, ended.ID))
		events(t, w, agent, v.ID)
		w.Clock.Advance(time.Second / 2)
	}
	w.Clock.Advance(time.Second)
	list := events(t, w, agent, v.ID)
	if len(list) != before+1 || list[0].Type != "auth_failed" || list[0].Count != 3 || !list[0].IsFailure() || list[0].Advice() == "" {
		t.Fatalf("after three wrong passwords the feed has %+v", list)
	}
	if list := events(t, w, agent, ended.ID); len(list) != atEnd {
		t.Errorf("a session that has ended has %+v", list)
	}
	for range 50 { // a minute long
		w.Observer.Observe(wrongPassword(w, v.ID))
		w.Clock.Advance(time.Second)
		if list = events(t, w, agent, v.ID); len(list) != before+1 {
			t.Fatalf("within a minute the feed has %d events", len(list))
		}
	}
	w.Clock.Advance(time.Minute)
	if list = events(t, w, agent, v.ID); len(list) != before+2 || list[0].Count != 50 {
		t.Errorf("after a minute of wrong passwords the feed has %+v", list[0])
	}
}

// Guesses of user names cost a bounded number of look-ups, and make room again.
func TestGuessesOfUserNamesAreBounded(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{})
	agent := w.RegisterFunded(50)
	v := w.Buy(agent, apptest.Local)
	before := len(events(t, w, agent, v.ID))
	for i := range telemetry.GuessedSessions {
		w.Observer.Observe(wrongPassword(w, fmt.Sprintf("sess_guess%015d", i)))
	}
	w.Observer.Observe(wrongPassword(w, v.ID)) // is not counted
	for range 3 {
		w.Clock.Advance(2 * time.Second)
		if list := events(t, w, agent, v.ID); len(list) != before {
			t.Errorf("more sessions are counted than may be: %+v", list[0])
		}
	}
	w.Clock.Advance(time.Minute)
	events(t, w, agent, v.ID)
	w.Observer.Observe(wrongPassword(w, v.ID))
	w.Clock.Advance(2 * time.Second)
	if list := events(t, w, agent, v.ID); len(list) != before+1 || list[0].Count > 1 {
		t.Errorf("after the guesses the feed has %+v", list)
	}
}
