package storage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/ports"
	"agentproxy/test/link"
	"agentproxy/test/pg"
)

// planAhead plans the settlement of a session.
func planAhead(ctx context.Context, st ports.Store, id string, at time.Time) error {
	reads := ports.ReadSet{Sessions: []string{id}, Owners: true}
	return st.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
		return tx.Traffic().SetSettleAt(ctx, id, at)
	})
}

// settleAhead is the unit of a settlement that is planned for a time: it does not know the agent.
func settleAhead(ctx context.Context, st ports.Store, id string, planned time.Time) error {
	reads := ports.ReadSet{Sessions: []string{id}, Owners: true}
	return st.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
		s, err := tx.Sessions().Load(ctx, id)
		if err != nil {
			return err
		}
		at, err := tx.Traffic().SettleAt(ctx, id)
		if err != nil || !at.Equal(planned) {
			return fmt.Errorf("planned for %v, want %v: %w", at, planned, err)
		}
		if _, err := tx.Traffic().Usage(ctx, id); err != nil {
			return err
		}
		if _, err := tx.Ledger().Wallet(ctx, s.AgentID); err != nil {
			return err
		}
		if _, err := tx.Agents().Get(ctx, s.AgentID); err != nil {
			return err
		}
		release := billing.Entry{ID: "txn_settle_" + id, AgentID: s.AgentID, Type: billing.Release,
			Available: s.Money.Held, Held: s.Money.Held.Neg(), Ref: "release:" + id, SessionID: id, At: now}
		if _, err := tx.Ledger().Post(ctx, ports.Posting{Entry: release}); err != nil {
			return err
		}
		if _, err := tx.Webhooks().PeekEndpoint(ctx, s.AgentID); err != nil {
			return err
		}
		s.Money.Held = billing.Funds{}
		return errors.Join(tx.Traffic().SetSettleAt(ctx, id, time.Time{}), tx.Sessions().Put(ctx, s))
	})
}

func TestASettlementThatIsReadAheadTakesTwoRoundTrips(t *testing.T) {
	t.Parallel()
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", 100*domain.Dollar)
	at := now.Add(time.Hour)
	for n := range int64(3) { // the first prepares its statements
		if err := buyAhead(t.Context(), st, "agt_1", n, nothing); err != nil {
			t.Fatal(err)
		}
		before := w.Asked()
		if err := planAhead(t.Context(), st, sessionID(n), at); err != nil {
			t.Fatal(err)
		}
		if asked := w.Asked() - before; asked != 2 && n > 0 {
			t.Errorf("a plan asked the server %d times, want 2", asked)
		}
		before = w.Asked()
		if err := settleAhead(t.Context(), st, sessionID(n), at); err != nil {
			t.Fatal(err)
		}
		if asked := w.Asked() - before; asked != 2 && n > 0 {
			t.Errorf("a settlement asked the server %d times, want 2", asked)
		}
	}
	verify(t, st)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		due, err := tx.Sessions().SettleDue(ctx, at, 10)
		if len(due) > 0 {
			t.Errorf("due after they were settled: %v", due)
		}
		return err
	})
}
