package telemetry_test

import (
	"context"
	"fmt"
	"testing"

	"agentproxy/app/telemetry"
	"agentproxy/domain"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// held is a queue that keeps what is published, and folds nothing by itself.
type held struct {
	ports.TelemetryQueue
	calls []ports.QueuedCall
}

func (q *held) Publish(_ context.Context, _ string, call []byte) (ports.QueuePlace, error) {
	seq := uint64(len(q.calls) + 1)
	q.calls = append(q.calls, ports.QueuedCall{Seq: seq, Body: call})
	return ports.QueuePlace{Seq: seq}, nil
}

func (q *held) Folded(context.Context, ports.QueuePlace) bool { return false }

// Calls may come again, alone or before new ones, and to another replica: each is folded once. A stream that
// is made anew begins at its first call.
func TestACallIsFoldedOnceHoweverOftenItComes(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	queue := &held{}
	service := telemetry.New(w.Store, w.Clock, w.IDs, w.Observer)
	service.WithQueue(queue)
	report := func() {
		t.Helper()
		_, err := service.Report(t.Context(), agent, event(v.ID, "success"))
		apptest.OK(t, err)
	}
	fold := func(what, stream string, calls []ports.QueuedCall, cursor uint64, events int) {
		t.Helper()
		at, err := service.Fold(t.Context(), ports.QueuedCalls{Queue: "0", Stream: stream, Calls: calls})
		apptest.OK(t, err)
		apptest.Equal(t, what+": the cursor", at, ports.FoldCursor{Stream: stream, Seq: cursor})
		h, err := w.Telemetry.Health(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		apptest.Equal(t, what+": counted", h.State.Stats().Session.Reported.TotalEvents, int64(events))
		list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
		apptest.OK(t, err)
		apptest.Equal(t, what+": stored", list.Total, events)
		o, err := w.Stats.Overview(t.Context(), agent)
		apptest.OK(t, err)
		apptest.Equal(t, what+": tallied", o.EventsReported, int64(events))
	}
	report()
	report()
	fold("two calls", "first", queue.calls, 2, 2)
	fold("the same", "first", queue.calls, 2, 2)
	fold("the earlier one", "first", queue.calls[:1], 2, 2)
	report()
	fold("the same and a new one", "first", queue.calls, 3, 3)
	fold("another stream", "second", queue.calls[:1], 1, 4)
}

func TestACallThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	before := w.Dump()
	for _, body := range []string{`{`, `{"v":2}`, `{"v":1,"agent":"agt_1","events":[null]}`} {
		calls := []ports.QueuedCall{{Seq: 1, Body: []byte(body)}}
		if _, err := w.Telemetry.Fold(t.Context(), ports.QueuedCalls{Queue: "0", Stream: "s", Calls: calls}); err == nil {
			t.Errorf("%s is folded", body)
		}
	}
	apptest.Equal(t, "the database", w.Dump(), before)
}

func TestACallThatNamesASessionOfAnotherAgentDropsThatEvent(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	owner, other := w.Register(), w.Register()
	own, alien := w.Buy(other, apptest.Local), w.Buy(owner, apptest.Local)
	body := fmt.Sprintf(`{"v":1,"agent":%q,"events":[{"session":%q,"id":"evt_1","type":"block"},{"session":%q,"id":"evt_2","type":"block"}]}`,
		other, own.ID, alien.ID)
	_, err := w.Telemetry.Fold(t.Context(), ports.QueuedCalls{Queue: "0", Stream: "s", Calls: []ports.QueuedCall{{Seq: 1, Body: []byte(body)}}})
	apptest.OK(t, err)
	ownReported, _, _ := eventTotals(w, other, own.ID)
	alienReported, _, score := eventTotals(w, owner, alien.ID)
	apptest.Equal(t, "reported of the own session", ownReported, 1)
	apptest.Equal(t, "reported of the other one", alienReported, 0)
	apptest.Equal(t, "its score", score, 100)
}

// full is a queue that takes no call of any size.
type full struct{ ports.TelemetryQueue }

func (full) Publish(context.Context, string, []byte) (ports.QueuePlace, error) {
	return ports.QueuePlace{}, ports.ErrCallTooLarge
}

func TestACallThatIsTooLargeForTheQueueIsFoldedAtOnce(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	service := telemetry.New(w.Store, w.Clock, w.IDs, w.Observer).WithQueue(full{})
	_, err := service.Batch(t.Context(), agent, []telemetry.ReportedEvent{event(v.ID, "success"), event(v.ID, "block")})
	apptest.OK(t, err)
	reported, _, _ := eventTotals(w, agent, v.ID)
	apptest.Equal(t, "reported", reported, 2)
}
