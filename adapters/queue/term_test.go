package queue

import (
	"context"
	"testing"
)

func TestATermEndsWithItsContext(t *testing.T) {
	q := &Queue{term: new(term)}
	if q.Leads() {
		t.Error("it leads before it was elected")
	}
	ctx, lose := context.WithCancel(t.Context())
	if q.term.begin(ctx); !q.Leads() {
		t.Error("it does not lead though it was elected")
	}
	if lose(); q.Leads() {
		t.Error("it leads though River's leader ended")
	}
	q.term.begin(t.Context())
	if q.term.resign(); q.Leads() {
		t.Error("it leads after it has stopped")
	}
}
