package maintenance_test

import (
	"fmt"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/test/apptest"
	"agentproxy/test/link"
	"agentproxy/test/pg"
)

// Settlements share transactions: even one by one they ask the server twice each, and units that run alone ask
// it six times or more.
func TestSettlementsAreReadAhead(t *testing.T) {
	t.Parallel()
	l, url := link.New(t, pg.Database(t), 0)
	w, done := apptest.Start(t, apptest.Options{Database: url})
	t.Cleanup(done)
	agent := w.RegisterFunded(1000)
	const sessions = 8
	ids := make([]string, sessions)
	for i := range ids {
		ids[i] = w.Buy(agent, apptest.Local).ID
	}
	for hour := range 2 { // the first prepares its statements
		for _, id := range ids {
			w.UseBytes(id, fmt.Sprint("l", hour), int64(hour+1)*50_000_000)
		}
		w.Clock.Advance(time.Hour)
		before := l.Asked()
		apptest.OK(t, w.Tasks.Settle(t.Context()))
		if asked := l.Asked() - before; hour > 0 && asked > 3*sessions {
			t.Errorf("%d settlements asked the server %d times", sessions, asked)
		}
		for _, id := range ids {
			if charged := w.Read(agent, id).Money.Charged.Total(); charged == domain.Money(0) {
				t.Errorf("hour %d: %s is charged nothing", hour, id)
			}
		}
	}
}
