package queue

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestATermEndsUnlessItIsProlonged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &Queue{term: new(term)}
		if q.Leads() {
			t.Error("it leads before it was elected")
		}
		for range 10 {
			q.term.extend(time.Now())
			if time.Sleep(leadEvery); !q.Leads() {
				t.Error("it does not lead though its term is extended")
			}
		}
		if time.Sleep(leadFor - leadEvery); q.Leads() {
			t.Error("it leads past its term")
		}
		q.term.extend(time.Now())
		if q.term.end(); q.Leads() {
			t.Error("it leads after it has stopped")
		}
	})
}
