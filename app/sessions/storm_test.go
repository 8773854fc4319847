package sessions_test

import (
	"context"
	"sync"
	"testing"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/test/apptest"
	"agentproxy/test/campaign"
)

// Many callers of one agent buy, read, rotate and end sessions, and repeat a call under one key, all at
// once. Every one is answered; apptest counts deadlocks.
func TestAStormOfOneAgentIsAnswered(t *testing.T) {
	t.Parallel()
	w := apptest.OpenPostgres(t)
	agent := w.RegisterFunded(10_000)
	ctx := context.Background()
	var storm sync.WaitGroup
	var mu sync.Mutex
	repeated := map[string]int{}
	for range campaign.Rounds(30, 100) {
		storm.Go(func() {
			d, err := w.Create(agent, apptest.Local)
			if err != nil {
				t.Errorf("create: %v", err)
				return
			}
			id := d.View.ID
			if _, err := w.Sessions.Read(ctx, agent, id); err != nil {
				t.Errorf("read: %v", err)
			}
			if _, err := w.Sessions.Rotate(ctx, sessions.Rotate{AgentID: agent, SessionID: id}); err != nil {
				t.Errorf("rotate: %v", err)
			}
			if _, err := w.Sessions.List(ctx, sessions.List{AgentID: agent, Page: domain.Page{Number: 1, Size: 20}}); err != nil {
				t.Errorf("list: %v", err)
			}
			if _, err := w.Sessions.Terminate(ctx, agent, id); err != nil {
				t.Errorf("terminate: %v", err)
			}
		})
		storm.Go(func() {
			d, err := w.CreateWith(agent, apptest.Local, idempotency.Call{Key: "one", Path: "/sessions", Hash: []byte("one")})
			if err != nil {
				t.Errorf("repeat: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			repeated[d.View.ID]++
		})
	}
	storm.Wait()
	apptest.Equal(t, "the sessions of one key", len(repeated), 1)
}
