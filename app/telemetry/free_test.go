package telemetry_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
)

// refusal is an observation of a connection that moved nothing.
func refusal(w *apptest.World, agent, id, host string) traffic.Observation {
	return traffic.Observation{SessionID: id, AgentID: agent, At: w.Clock.Now(), Type: "refused", Host: host, StatusCode: 403,
		Code: "TARGET_REFUSED", ExitIP: "10.0.0.1", HowToFix: "use a public address or name, and a port other than 25, 465 and 587"}
}

// events returns all events of a session, newest first.
func events(t *testing.T, w *apptest.World, agent, id string) []eventlog.Event {
	t.Helper()
	apptest.OK(t, w.Observer.Flush(t.Context()))
	var all []eventlog.Event
	for n := 1; ; n++ {
		list, err := w.Sessions.Events(t.Context(), agent, id, domain.Page{Number: n, Size: 100})
		apptest.OK(t, err)
		all = append(all, list.Items...)
		if len(all) >= list.Total {
			return all
		}
	}
}

func counts(list []eventlog.Event) (n int) {
	for _, e := range list {
		n += max(e.Count, 1)
	}
	return n
}

func TestEqualRefusalsAreOneEvent(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	long := strings.Repeat("a", 60) + strings.Repeat(".b", 95)
	for range 500 {
		w.Observer.Observe(refusal(w, agent, v.ID, "10.1.2.3"))
	}
	w.Observer.Observe(refusal(w, agent, v.ID, long))
	w.Clock.Advance(time.Millisecond)
	w.Observe(v.ID, "example.com", health.Success) // moved something
	list := events(t, w, agent, v.ID)
	if len(list) != 3 || list[2].Count != 500 || list[2].TargetHost != "10.1.2.3" || list[1].TargetHost != long[:64] {
		t.Errorf("the feed has %+v", list)
	}
	t.Run("what moved bytes is never counted together", func(t *testing.T) {
		for range 10 {
			w.Observe(v.ID, "example.com", "")
		}
		if list := events(t, w, agent, v.ID); len(list) != 13 {
			t.Errorf("the feed has %d events, want 13", len(list))
		}
	})
	t.Run("a failure is evidence each time", func(t *testing.T) {
		v := w.Buy(agent, apptest.Local)
		for range 5 {
			o := refusal(w, agent, v.ID, "example.com")
			o.Type, o.Evidence = "failed", health.Timeout
			w.Observer.Observe(o)
		}
		apptest.OK(t, w.Observer.FlushAll(t.Context()))
		if _, observed, _ := eventTotals(w, agent, v.ID); observed != 5 {
			t.Errorf("%d pieces of evidence, want 5", observed)
		}
	})
}

func TestRefusalsOfASessionAndAnAgentAreBounded(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{})
	agent, other := w.Register(), w.Register()
	v := w.Buy(agent, apptest.Local)
	refuse := func(agent, id string, seconds, each int) {
		for s := range seconds {
			for n := range each {
				w.Observer.Observe(refusal(w, agent, id, fmt.Sprintf("h%d-%d.test", s, n)))
			}
			apptest.OK(t, w.Observer.Flush(t.Context()))
			w.Clock.Advance(time.Second)
		}
	}
	refuse(agent, v.ID, 10, 100)
	list := events(t, w, agent, v.ID)
	if len(list) > 60+10+2 || counts(list) < 60+40 {
		t.Errorf("after 1,000 the feed has %d events for %d", len(list), counts(list))
	}
	w.Clock.Advance(time.Minute)
	if list = events(t, w, agent, v.ID); counts(list) != 1000 {
		t.Errorf("a minute later %d of 1,000 are counted", counts(list))
	}
	if newest := list[0]; newest.TargetHost != "" || newest.Count < 500 {
		t.Errorf("the rest is %+v", newest)
	}
	mine := w.Buy(other, apptest.Local)
	refuse(other, mine.ID, 1, 5)
	if list := events(t, w, other, mine.ID); len(list) != 5 {
		t.Errorf("another agent has %d events of 5", len(list))
	}
	t.Run("a day", func(t *testing.T) {
		before := len(events(t, w, agent, v.ID))
		refuse(agent, v.ID, 4000, 2)
		if n := len(events(t, w, agent, v.ID)) - before; n > 2_000 {
			t.Errorf("one session has %d events a day", n)
		}
		w.Clock.Advance(24 * time.Hour)
		before = len(events(t, w, agent, v.ID))
		refuse(agent, v.ID, 5, 2)
		if n := len(events(t, w, agent, v.ID)) - before; n != 10 {
			t.Errorf("the next day %d events of 10", n)
		}
	})
}

// What one client can have refused in 15 seconds with 20 sessions takes little of the disk:
// 58,296 refusals of different hosts of 250 bytes, stored every half second as the service does.
func TestRefusalsDoNotFillTheDisk(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{})
	if w.Postgres() {
		t.Skip("measures a file")
	}
	agent := w.RegisterFunded(1000)
	var ids []string
	for range 20 {
		ids = append(ids, w.Buy(agent, apptest.Local).ID)
	}
	before := size(t, w)
	const refusals, flushes = 58_296, 30
	for n := range refusals {
		host := fmt.Sprintf("h%d.%s.%stest", n, strings.Repeat("a", 63), strings.Repeat("b.", 88)) // differ in what is kept
		w.Observer.Observe(refusal(w, agent, ids[n%len(ids)], host))
		if n%(refusals/flushes) == 0 {
			apptest.OK(t, w.Observer.Flush(t.Context()))
			w.Clock.Advance(time.Second / 2)
		}
	}
	apptest.OK(t, w.Observer.FlushAll(t.Context()))
	if grown := size(t, w) - before; grown > 1<<20 {
		t.Errorf("the database grew by %d KiB", grown>>10)
	} else {
		t.Logf("the database grew by %d KiB", grown>>10)
	}
}

// size returns the bytes of the database on disk.
func size(t *testing.T, w *apptest.World) (n int64) {
	t.Helper()
	w.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	info, err := os.Stat(w.Database)
	apptest.OK(t, err)
	return info.Size()
}
