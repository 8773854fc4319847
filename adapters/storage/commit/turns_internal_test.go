package commit

import (
	"context"
	"strings"
	"testing"

	"agentproxy/ports"
)

func TestAgentsTakeTurns(t *testing.T) {
	t.Parallel()
	q := newTurns(100)
	names := map[*unit]string{}
	push := func(agentID string, names1 ...string) {
		for _, name := range names1 {
			u := &unit{reads: &ports.ReadSet{}, ctx: ports.WithAgent(context.Background(), agentID)}
			names[u] = name
			q.room <- struct{}{}
			q.push(u)
		}
	}
	pop := func(n int) string {
		var list []string
		for range n {
			if u := q.pop(); u != nil {
				list = append(list, names[u])
			}
		}
		return strings.Join(list, " ")
	}
	push("agt_a", "a1", "a2", "a3", "a4")
	if got := pop(1); got != "a1" {
		t.Errorf("alone it is %s", got)
	}
	push("agt_b", "b1", "b2")
	push("", "s1") // of the service
	if got := pop(3); got != "a2 b1 s1" {
		t.Errorf("first comes %s", got)
	}
	push("agt_c", "c1")
	if got := pop(9); got != "a3 b2 c1 a4" {
		t.Errorf("then comes %s", got)
	}
	if len(q.room) != 0 || q.waiting() != 0 || len(q.of) != 0 || len(q.order) != 0 {
		t.Errorf("empty, it keeps %d, %d, %v, %v", len(q.room), q.waiting(), q.of, q.order)
	}
}
