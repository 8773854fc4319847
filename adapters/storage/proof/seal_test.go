package proof_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/app/operator"
	"agentproxy/app/sessions"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/pg"
	"agentproxy/test/sqlitetest"
)

const sealsStay = "a sealed month is as it was sealed"

// What is in a sealed month is left out for a week, and a change of it is found by the proof after that.
func TestSealedMonthsAreProvedEachWeek(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, h *history, copied func(*testing.T) *storage.Store) {
		st := copied(t)
		faults, all, err := st.Verify(t.Context())
		apptest.OK(t, err)
		open, some, sealed, err := st.VerifyOpen(t.Context())
		apptest.OK(t, err)
		if len(faults)+len(open) > 0 || sealed.IsZero() || some == 0 || some >= all {
			t.Fatalf("%d entries, %d of them after %s; %+v, %+v", all, some, sealed, faults, open)
		}
		h.corrupt(t, st, corruption{do: []string{"UPDATE sessions SET bought_by = 'key_x' WHERE agent_id = '$payer$'",
			"UPDATE wallets SET restricted_keys = restricted_keys + 1 WHERE agent_id = '$payer$'",
			`INSERT INTO key_wallets (agent_id, key_id, products, max_sessions, own, held, spent, live_sessions, spent_day, spent_today)
				SELECT agent_id, 'key_x', '', 0, 0, SUM(held_trial + held_own),
				SUM(charged_trial + charged_own - refunded_trial - refunded_own),
				SUM(CASE WHEN status IN ('creating', 'active') THEN 1 ELSE 0 END), 0, 0
				FROM sessions WHERE agent_id = '$payer$' GROUP BY agent_id`}})
		if open, _, _, err := st.VerifyOpen(t.Context()); err != nil || len(open) > 0 {
			t.Errorf("of a key that bought sessions of a sealed month: %v, %+v", err, open)
		}
		h.corrupt(t, st, corruption{do: []string{"UPDATE ledger_entries SET description = 'another' WHERE ref = 'hold:$over$'"}})
		before := h.now
		if p := provedAll(t, st); p.Faults > 0 || !p.WholeAt.Equal(before) || p.Entries != int64(all) {
			t.Errorf("a proof within the week: %+v", p)
		}
		h.now = h.now.Add(7 * 24 * time.Hour)
		defer func() { h.now = before }()
		if p := provedAll(t, st); p.Faults == 0 || !p.WholeAt.Equal(before) {
			t.Errorf("a week later: %+v", p)
		}
		faults, _, err = st.Verify(t.Context())
		apptest.OK(t, err)
		if !slices.ContainsFunc(faults, func(f ports.Fault) bool { return f.Rule == sealsStay }) {
			t.Errorf("verified, the faults are %+v", faults)
		}
	})
}

// Sessions that go on when their first month is sealed are right in the proofs that begin behind it.
func TestProofsBeginBehindASealedMonth(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func() string{"sqlite": func() string { return sqlitetest.InMemory(t) },
		"postgres": func() string { return pg.Database(t) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			h, done := beginHistory(t, database())
			defer done()
			first := h.right("at first")
			id := func(name string) string { return h.id("$" + name + "$") }
			for _, live := range []string{id("live"), id("sold"), id("renewed")} {
				_, err := h.Sessions.Renew(ctx, sessions.Renew{AgentID: id("payer"), SessionID: live})
				apptest.OK(t, err)
			}
			_, err := h.Sessions.Terminate(ctx, id("payer"), id("other"))
			apptest.OK(t, err)
			_, err = operator.NewSessions(h.Store, h.Clock, h.IDs, h.Transitions, h.Hub).End(ctx, id("extended"))
			apptest.OK(t, err)
			h.UseBytes(id("added"), "z", 3_000_000)
			_, err = h.Sessions.TopUp(ctx, sessions.TopUp{AgentID: id("payer"), SessionID: id("added"), Bytes: apptest.Gigabytes("0.1")})
			apptest.OK(t, err)
			h.right("while sessions are used")
			h.Clock.Advance(2 * time.Hour)
			apptest.OK(t, h.Tasks.Settle(ctx))
			_, err = h.Sessions.Terminate(ctx, id("payer"), id("added"))
			apptest.OK(t, err)
			more := h.BuySmall(id("payer")).ID
			h.UseBytes(more, "y", 2_000_000)
			h.lead()
			h.right("after they ended")
			p := provedAll(t, h.DB)
			if p.Faults > 0 || !p.Sealed.Equal(first) {
				t.Errorf("the proof behind it: %+v", p)
			}
			h.Clock.Advance(35 * 24 * time.Hour)
			apptest.OK(t, h.Tasks.ExpireSessions(ctx))
			apptest.OK(t, h.Tasks.ExpireTrials(ctx))
			h.RunMinutes(3)
			h.lead()
			if p := provedAll(t, h.DB); p.Faults > 0 || !p.Sealed.After(first) {
				t.Errorf("the proof that seals another month: %+v", p)
			}
			h.UseBytes(more, "x", 2_000_000)
			h.right("behind two months")
		})
	}
}

// right expects no fault, in what is sealed and beside it, and returns before when months are sealed.
func (h *history) right(when string) time.Time {
	h.T.Helper()
	whole, all, err := h.DB.Verify(h.T.Context())
	apptest.OK(h.T, err)
	open, some, sealed, err := h.DB.VerifyOpen(h.T.Context())
	apptest.OK(h.T, err)
	if len(whole)+len(open) > 0 || sealed.IsZero() || some >= all {
		h.T.Errorf("%s, %d entries, %d of them after %s: %+v, %+v", when, all, some, sealed, whole, open)
	}
	return sealed
}

// id returns the id that a placeholder is for.
func (h *history) id(placeholder string) string {
	return strings.NewReplacer(h.names...).Replace(placeholder)
}
