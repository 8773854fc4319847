package proof_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"agentproxy/adapters/storage"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/campaign"
	"agentproxy/test/pg"
	"agentproxy/test/sqlitetest"
)

// The rules that see the corruptions.
const (
	lasts     = "a static session lasts as many days as were paid"
	refunds   = "a static session that ends early is refunded its unused days by its reason"
	ordered   = "a session is what was ordered for it"
	exits     = "the addresses of a session are its exits"
	flags     = "a wallet has the sum and the flags of the own money that its entries credit"
	decided   = "what an operator decides of an account is an action of his"
	spent     = "what a wallet spent on its day was held on it"
	ownPlace  = "what an agent pays goes to an address of its own"
	sellers   = "an active session of a seller has its order there"
	settled   = "a session is settled soon after it was used or ended"
	actions   = "no action of an operator that was proved has changed"
	proved    = "every old entry is proved"
	unchanged = "no entry that was proved has changed"
	guards    = "the ledger cannot be changed"
)

// corruption is a change of a right database. Its statements run without the triggers, which are on again
// afterwards.
type corruption struct {
	no     int
	name   string
	rule   string // that sees it; empty: none does, since
	why    string
	digest bool // the digests are removed too, with the state of their proof
	do     []string
}

const undigested = "DELETE FROM ledger_proofs; DELETE FROM service_values WHERE name = 'ledger-proof'"

// corruptions are those of the third audit of money, in its order.
var corruptions = []corruption{
	{no: 0, name: "control: a wallet of 1 more", rule: "every wallet equals its entries", do: []string{
		"UPDATE wallets SET own = own + 1 WHERE agent_id = '$payer$'"}},
	{no: 1, name: "the end of a static session ten years later", rule: lasts, do: []string{
		"UPDATE sessions SET expires_at = expires_at + 3653 * 86400000000 WHERE id = '$live$'"}},
	{no: 2, name: "the beginning of a static session ten years earlier", rule: lasts, do: []string{
		"UPDATE sessions SET activated_at = activated_at - 3653 * 86400000000 WHERE id = '$live$'"}},
	{no: 3, name: "a static session lost without its refund", rule: refunds, do: end("terminated", "provider_lost")},
	{no: 4, name: "a static session ended by the operator without its refund", rule: refunds, do: end("terminated", "operator_request")},
	{no: 5, name: "another reason of an end", rule: refunds, do: []string{
		"UPDATE sessions SET reason = 'provider_lost' WHERE id = '$quit$'"}},
	{no: 6, name: "fair use lifted", why: "how much a product carries is in the configuration alone", do: []string{
		"UPDATE sessions SET bytes = 0 WHERE id = '$live$'"}},
	{no: 7, name: "another country", rule: ordered, do: []string{"UPDATE sessions SET country = 'FR' WHERE id = '$sold$'"}},
	{no: 8, name: "another product", rule: "a session is of the product that it was held for", do: []string{
		"UPDATE sessions SET product_no = 'sta_city_1' WHERE id = '$live$'"}},
	{no: 9, name: "another provider", rule: ordered, do: []string{"UPDATE sessions SET provider = 'embedded' WHERE id = '$sold$'",
		"UPDATE static_addresses SET provider = 'embedded' WHERE session_id = '$sold$'"}},
	{no: 10, name: "exits of two sessions swapped", rule: exits, do: []string{
		`UPDATE sessions SET exits = (SELECT x.exits FROM sessions x WHERE x.id <> sessions.id AND x.id IN ('$live$', '$other$'))
			WHERE id IN ('$live$', '$other$')`}},
	{no: 11, name: "another static address", rule: exits, do: []string{
		"UPDATE static_addresses SET ip = '192.0.2.99' WHERE session_id = '$live$'"}},
	{no: 12, name: "own money never credited", rule: flags, do: []string{
		"UPDATE wallets SET credited = 0, funded = 0 WHERE agent_id = '$payer$'"}},
	{no: 13, name: "a verification", rule: decided, do: []string{
		"UPDATE agents SET verified_for = 'a passport' WHERE id = '$young$'"}},
	{no: 14, name: "budget lifted", why: "it is the agent's own, and no trail keeps it", do: []string{
		"UPDATE wallets SET budget_daily = NULL, budget_total = NULL, budget_paused = 0"}},
	{no: 15, name: "nothing spent today", rule: spent, do: []string{
		"UPDATE wallets SET spent_today = 0 WHERE agent_id = '$payer$'"}},
	{no: 16, name: "900 spent today", rule: spent, do: []string{
		"UPDATE wallets SET spent_today = spent_today + 900000000 WHERE agent_id = '$payer$'"}},
	{no: 17, name: "the end of the trial a year later", why: "the days of a trial are in the configuration, and change with it",
		do: []string{"UPDATE wallets SET trial_expires_at = trial_expires_at + 365 * 86400000000 WHERE agent_id = '$young$'"}},
	{no: 18, name: "a trial past its end that can be spent", rule: "expired trial credit is not spendable", do: []string{
		"UPDATE wallets SET trial_expires_at = trial_expires_at - 14 * 86400000000 WHERE agent_id = '$young$'"}},
	{no: 19, name: "no trial was granted today", rule: "what was granted of the trial on a day is counted", do: []string{
		"UPDATE trial_grants SET granted = 0 WHERE scope = 'total'"}},
	{no: 20, name: "a key removed", why: "keys are removed after a day, and nothing counts them", do: []string{
		"DELETE FROM idempotency_keys WHERE key = 'young'"}},
	{no: 21, name: "a key that names a session of another", rule: "an idempotency key names a session of its agent", do: []string{
		"UPDATE idempotency_keys SET resource = '$again$' WHERE key = 'young'"}},
	{no: 22, name: "an address of payments removed", rule: ownPlace, do: []string{
		"DELETE FROM recharge_addresses WHERE agent_id = '$payer$'"}},
	{no: 23, name: "another owner of an address of payments", rule: ownPlace, do: []string{
		"UPDATE recharge_addresses SET agent_id = '$young$' WHERE agent_id = '$unpaid$'"}},
	{no: 24, name: "the next index is 0", rule: "no index of a key is given out again", do: []string{
		"UPDATE recharge_keys SET next = 0"}},
	{no: 25, name: "the chain read a million blocks further", rule: "a chain is read up to its head at most", do: []string{
		"UPDATE recharge_marks SET final_number = final_number + 1000000"}},
	{no: 26, name: "another amount of an open order", why: "what the agent asked for is nowhere else", do: []string{
		"UPDATE recharge_orders SET amount = amount + 1000000 WHERE id = '$open_order$'"}},
	{no: 27, name: "another address of an open order", rule: ownPlace, do: []string{
		"UPDATE recharge_orders SET address = 'Tx' WHERE id = '$open_order$'"}},
	{no: 28, name: "an open order failed", rule: "a window closes once the chain is past it", do: []string{
		"UPDATE recharge_orders SET status = 'failed' WHERE id = '$open_order$'"}},
	{no: 29, name: "paid in 1970", rule: "an order is paid at the time of a transfer to it", do: []string{
		"UPDATE recharge_orders SET paid_at = 1 WHERE id = '$paid_order$'"}},
	{no: 30, name: "another cost of an order at a seller", rule: "the costs that are summed of a day are of its orders", do: []string{
		"UPDATE upstream_orders SET cost = cost + 1000000 WHERE session_id = '$sold$'"}},
	{no: 31, name: "the order of a live session removed", rule: sellers, do: []string{
		"DELETE FROM upstream_orders WHERE session_id = '$sold$'"}},
	{no: 32, name: "an order that is never read again", rule: sellers, do: order("next_at = 0")},
	{no: 33, name: "an order closed", rule: sellers, do: order("closed_at = 1")},
	{no: 34, name: "an order gone", rule: sellers, do: order("state = 'gone'")},
	{no: 35, name: "an order of another seller", rule: sellers, do: order("provider = 'second'")},
	{no: 36, name: "the lines of a list free again", rule: "an active session of a list has its lines", do: []string{
		"DELETE FROM list_claims"}},
	{no: 37, name: "another line of a list", why: "which lines there are is in the list, and the order is sealed", do: []string{
		"UPDATE list_claims SET line = 'another'"}},
	{no: 38, name: "an active session settled in 2200", rule: settled, do: []string{
		"UPDATE sessions SET settle_at = 7258118400000000 WHERE id = '$added$'"}},
	{no: 39, name: "an ended session that holds money settled in 2200", rule: settled, do: []string{
		"DELETE FROM leases WHERE session_id = '$held$'",
		"UPDATE sessions SET settle_at = 7258118400000000, leased = 0 WHERE id = '$held$'"}},
	{no: 40, name: "additions forgotten", rule: "a session has the additions that were bought for it", do: []string{
		"UPDATE sessions SET top_ups = '' WHERE id = '$added$'"}},
	{no: 41, name: "a thousand additions a day", why: "it is the agent's own setting, and the most that it may be", do: []string{
		`UPDATE sessions SET top_ups = substr(top_ups, 1, length(top_ups) - 1) ||
			',"auto":{"below":99,"bytes":1000000,"per_day":1000}}' WHERE id = '$added$'`}},
	{no: 42, name: "workers that moved half", why: "a session moves more than its workers, and no entry is a worker's", do: []string{
		"UPDATE workers SET up = up / 2, down = down / 2"}},
	{no: 43, name: "a worker removed", why: "an agent removes workers", do: []string{"DELETE FROM workers"}},
	{no: 44, name: "no limit of a worker", why: "it is the agent's own setting", do: []string{
		"UPDATE workers SET max_bytes = 0"}},
	{no: 45, name: "an action of an operator edited", rule: actions, do: []string{
		"UPDATE audit_actions SET reason = 'another' WHERE name = 'backup'"}},
	{no: 46, name: "an action of an operator removed", rule: actions, do: []string{
		"DELETE FROM audit_actions WHERE name = 'backup'"}},
	{no: 47, name: "hours of another month", rule: "the hours of a session lie within its life", do: []string{
		"UPDATE usage_hours SET hour = hour - 31 * 86400000000 WHERE session_id = '$added$'"}},
	{no: 48, name: "other counts of reports", why: "reports are folded and not kept", do: []string{
		"UPDATE counters SET scored = scored + 5, good = good + 5"}},
	{no: 49, name: "no digests", rule: proved, do: []string{"DELETE FROM ledger_proofs"}},
	{no: 50, name: "another text and time of an entry", rule: proved, digest: true, do: []string{
		"UPDATE ledger_entries SET description = 'edited', at = at + 1000000 WHERE ref = 'hold:$live$'"}},
	{no: 51, name: "an adjustment turned into a trial", rule: proved, digest: true, do: []string{
		"UPDATE ledger_entries SET type = 'trial_grant', account = 'trial_grants', trial = own, own = 0 " +
			"WHERE agent_id = '$shut$' AND type = 'adjustment'"}},
	{no: 52, name: "the last entry erased", rule: proved, digest: true, do: []string{
		`UPDATE wallets SET own = own - (SELECT own FROM ledger_entries e WHERE e.agent_id = wallets.agent_id AND e.ord = entries),
			trial = trial - (SELECT trial FROM ledger_entries e WHERE e.agent_id = wallets.agent_id AND e.ord = entries),
			held_own = held_own - (SELECT held_own FROM ledger_entries e WHERE e.agent_id = wallets.agent_id AND e.ord = entries),
			held_trial = held_trial - (SELECT held_trial FROM ledger_entries e WHERE e.agent_id = wallets.agent_id AND e.ord = entries)
			WHERE agent_id = '$young$'`,
		"DELETE FROM ledger_entries WHERE agent_id = '$young$' AND ord = (SELECT entries FROM wallets WHERE agent_id = '$young$')",
		"UPDATE wallets SET entries = entries - 1 WHERE agent_id = '$young$'"}},
	{no: 53, name: "a recharge doubled everywhere", rule: proved, digest: true, do: []string{
		"UPDATE recharge_transfers SET amount = 2 * amount", "UPDATE recharge_orders SET received = 2 * received",
		"UPDATE ledger_entries SET balance_after = balance_after + 100000000 WHERE agent_id = '$payer$' AND ord > 1",
		"UPDATE ledger_entries SET own = 2 * own, counter = 2 * counter WHERE type = 'recharge'",
		"UPDATE wallets SET own = own + recharged, recharged = 2 * recharged WHERE agent_id = '$payer$'",
		"UPDATE usage_hours SET recharged = 2 * recharged WHERE recharged > 0"}},
	{no: 54, name: "a live static session never charged", rule: "an active static session is charged, and holds nothing but for a renewal",
		digest: true, do: []string{
			`UPDATE ledger_entries SET type = 'release', account = '', own = 0, trial = 0, held_own = 0, held_trial = 0, counter = 0
				WHERE session_id = '$live$' AND type = 'charge'`,
			`UPDATE wallets SET held_own = held_own + (SELECT charged_own FROM sessions WHERE id = '$live$'),
				held_trial = held_trial + (SELECT charged_trial FROM sessions WHERE id = '$live$'),
				charged = charged - (SELECT charged_own + charged_trial FROM sessions WHERE id = '$live$') WHERE agent_id = '$payer$'`,
			"DELETE FROM usage_hours WHERE session_id = '$live$'",
			`UPDATE sessions SET held_own = charged_own, held_trial = charged_trial, charged_own = 0, charged_trial = 0
				WHERE id = '$live$'`}},
	{no: 55, name: "a refund of 0.10 less", rule: refunds, digest: true, do: []string{
		"UPDATE ledger_entries SET own = own - 100000, counter = counter + 100000, balance_after = balance_after - 100000 WHERE ref = 'refund:$shut_session$'",
		"UPDATE wallets SET own = own - 100000, refunded = refunded - 100000 WHERE agent_id = '$shut$'",
		"UPDATE sessions SET refunded_own = refunded_own - 100000 WHERE id = '$shut_session$'",
		"UPDATE usage_hours SET refunded = refunded - 100000 WHERE session_id = '$shut_session$' AND refunded > 0"}},
	{no: 56, name: "a renewal at half its price", rule: proved, digest: true, do: []string{
		`UPDATE ledger_entries SET own = own / 2, trial = trial / 2, held_own = held_own / 2, held_trial = held_trial / 2
			WHERE ref LIKE 'hold:$renewed$:renew:%'`}},
	{no: 57, name: "an account disabled", rule: decided, do: []string{
		"UPDATE agents SET status = 'disabled', disabled_for = 'x' WHERE id = '$young$'"}},
	{no: 58, name: "another user of an account", why: "it is an id that nothing else has", do: []string{
		"UPDATE agents SET billing_user_id = 'usr_x' WHERE id = '$young$'"}},
	{no: 62, name: "an entry replaced", rule: unchanged, do: []string{
		"UPDATE ledger_entries SET description = 'replaced' WHERE ref = 'hold:$live$'"}},
}

// end ends a live static session.
func end(status, reason string) []string {
	return []string{
		fmt.Sprintf("UPDATE sessions SET status = '%s', reason = '%s', ended_at = activated_at + 86400000000 WHERE id = '$live$'", status, reason),
		"DELETE FROM static_addresses WHERE session_id = '$live$'",
		"UPDATE wallets SET live_sessions = live_sessions - 1 WHERE agent_id = '$payer$'"}
}

func order(set string) []string {
	return []string{"UPDATE upstream_orders SET " + set + " WHERE session_id = '$sold$'"}
}

// hollow are corruptions of the triggers themselves.
var hollow = map[bool][]corruption{ // by whether it is PostgreSQL
	false: {
		{no: 59, name: "a trigger that never fires", rule: guards, do: []string{"DROP TRIGGER ledger_entries_keep",
			`CREATE TRIGGER ledger_entries_keep BEFORE UPDATE ON ledger_entries WHEN 0
				BEGIN SELECT RAISE(ABORT, 'a ledger entry is never changed'); END`}},
		{no: 60, name: "a trigger of one column", rule: guards, do: []string{"DROP TRIGGER ledger_entries_keep",
			`CREATE TRIGGER ledger_entries_keep BEFORE UPDATE OF id ON ledger_entries
				BEGIN SELECT RAISE(ABORT, 'a ledger entry is never changed'); END`}},
		{no: 61, name: "no trigger of late hours", rule: guards, do: []string{"DROP TRIGGER usage_hours_late"}},
	},
	true: {
		{no: 59, name: "a trigger that does nothing", rule: guards, do: []string{
			"CREATE OR REPLACE FUNCTION refuse_ledger_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$"}},
		{no: 60, name: "a trigger of one column", rule: guards, do: []string{"DROP TRIGGER ledger_entries_keep ON ledger_entries",
			`CREATE TRIGGER ledger_entries_keep BEFORE UPDATE OF id OR DELETE ON ledger_entries
				FOR EACH ROW EXECUTE FUNCTION refuse_ledger_change()`}},
		{no: 61, name: "no trigger of late hours", rule: guards, do: []string{"DROP TRIGGER usage_hours_late ON usage_hours"}},
	},
}

// leastSeen is how many of the 62 verify sees at least.
const leastSeen = 50

func TestVerifySeesTheCorruptionsOfTheAudit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, h *history, copied func(*testing.T) *storage.Store) {
		faults, _, err := copied(t).Verify(t.Context())
		if err != nil || len(faults) > 0 {
			t.Fatalf("the sound database: %+v, %v", faults, err)
		}
		all, seen := slices.Concat(corruptions, hollow[h.Postgres()]), 0
		every := 1
		if h.Postgres() { // to copy a database takes longer than a proof, and most of a rule is the same text
			every = campaign.Rounds(3, 1)
		}
		for i, c := range all {
			if c.rule != "" && c.no > 0 {
				seen++
			}
			if i%every != 0 && i < len(corruptions) {
				continue
			}
			t.Run(fmt.Sprint(c.no, " ", c.name), func(t *testing.T) {
				t.Parallel()
				st := copied(t)
				h.corrupt(t, st, c)
				faults, _, err := st.Verify(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				named := slices.ContainsFunc(faults, func(f ports.Fault) bool { return f.Rule == c.rule })
				if c.rule == "" && len(faults) > 0 || c.rule != "" && !named {
					t.Errorf("want %q (%s), the faults are %+v", c.rule, c.why, faults)
				}
			})
		}
		if len(all) != 63 || seen < leastSeen {
			t.Errorf("%d of %d corruptions are seen", seen, len(all)-1)
		}
	})
}

// corrupt makes a change as a script of an operator does.
func (h *history) corrupt(t *testing.T, st *storage.Store, c corruption) {
	t.Helper()
	statements := slices.Clone(c.do)
	if c.digest {
		statements = append(statements, strings.Split(undigested, "; ")...)
	}
	off, on := h.triggers(t, st)
	if c.rule == guards {
		off, on = nil, nil
	}
	names := strings.NewReplacer(h.names...)
	for _, statement := range slices.Concat(off, statements, on) {
		result, err := st.Writer().ExecContext(t.Context(), names.Replace(statement))
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		if n, _ := result.RowsAffected(); n == 0 && !strings.Contains(statement, "TRIGGER") && !strings.Contains(statement, "FUNCTION") {
			t.Fatalf("%s changed nothing", names.Replace(statement))
		}
	}
}

// triggers returns the statements that take the triggers off, and put them back as they were.
func (h *history) triggers(t *testing.T, st *storage.Store) (off, on []string) {
	t.Helper()
	if h.Postgres() {
		for _, table := range []string{"ledger_entries", "recharge_transfers", "audit_actions", "usage_hours"} {
			off = append(off, "ALTER TABLE "+table+" DISABLE TRIGGER USER")
			on = append(on, "ALTER TABLE "+table+" ENABLE TRIGGER USER")
		}
		return off, on
	}
	rows, err := st.Writer().QueryContext(t.Context(), "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
	apptest.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		var name, text string
		apptest.OK(t, rows.Scan(&name, &text))
		off, on = append(off, "DROP TRIGGER "+name), append(on, text)
	}
	return off, on
}

// onEach runs a test on one history a kind of database, with what copies it.
func onEach(t *testing.T, test func(t *testing.T, h *history, copied func(*testing.T) *storage.Store)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := sqlitetest.InMemory(t)
		h := newHistory(t, path)
		content, err := os.ReadFile(path)
		apptest.OK(t, err)
		test(t, h, func(t *testing.T) *storage.Store {
			file := filepath.Join(t.TempDir(), "copy.db")
			apptest.OK(t, os.WriteFile(file, content, 0o600))
			return h.open(t, file)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		source := pg.Database(t)
		h := newHistory(t, source)
		var mu sync.Mutex
		n := 0
		test(t, h, func(t *testing.T) *storage.Store {
			mu.Lock()
			defer mu.Unlock()
			n++
			return h.open(t, template(t, source, n))
		})
	})
}

// template makes a copy of a database without connections.
func template(t *testing.T, source string, n int) string {
	u, err := url.Parse(source)
	apptest.OK(t, err)
	from := strings.TrimPrefix(u.Path, "/")
	admin, name := *u, fmt.Sprintf("%s_%d", from, n)
	admin.Path, u.Path = "/postgres", "/"+name
	run := func(statement string) error {
		conn, err := pgx.Connect(context.Background(), admin.String())
		if err != nil {
			return err
		}
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), statement)
		return err
	}
	apptest.OK(t, run("CREATE DATABASE "+name+" TEMPLATE "+from))
	t.Cleanup(func() { apptest.OK(t, run("DROP DATABASE "+name+" WITH (FORCE)")) })
	return u.String()
}

// The head that was published before proves the past against who computes every digest anew.
func TestAHeadProvesThePast(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, h *history, copied func(*testing.T) *storage.Store) {
		st := copied(t)
		p, err := st.Proof(t.Context())
		apptest.OK(t, err)
		if len(p.Head.Head) != 64 || p.Head.Entries == 0 || !p.Head.At.Equal(h.now) {
			t.Fatalf("the head is %+v", p.Head)
		}
		verify := func(what string, want int, head ports.ProofHead) {
			t.Helper()
			faults, _, err := st.Verify(t.Context(), head)
			apptest.OK(t, err)
			if len(faults) != want || want > 0 && faults[0].Rule != "the past is that of its published head" {
				t.Errorf("%s: %+v", what, faults)
			}
		}
		verify("as it was", 0, p.Head)
		h.corrupt(t, st, corruption{digest: true, do: []string{
			"UPDATE ledger_entries SET at = at + 1 WHERE ref = 'hold:$live$'",
			"UPDATE goose_db_version SET tstamp = '2120-01-01 00:00:00'", "DELETE FROM ledger_seals"}}) // as if nothing had been proved
		for range 4 {
			_, _, err := st.ProveNew(t.Context())
			apptest.OK(t, err)
		}
		again, err := st.Proof(t.Context())
		apptest.OK(t, err)
		verify("against the head of now", 0, again.Head)
		verify("against the head of then", 1, p.Head)
	})
}
