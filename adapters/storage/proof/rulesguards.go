package proof

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

// guarded is the name of the rule by which the triggers are as the migrations make them that keep the ledger,
// and what operators did, from being changed, and no others are on these tables.
const guarded = "the ledger cannot be changed"

// guardedTables are the tables of those triggers.
const guardedTables = "'ledger_entries', 'wallets', 'recharge_transfers', 'audit_actions', 'ledger_proofs', " +
	"'usage_hours'"

// guards are the triggers by table and name: the whole text, with that of the function on PostgreSQL, in which
// white space does not count.
var (
	sqliteGuards = map[string]string{
		"ledger_entries ledger_entries_keep": `CREATE TRIGGER ledger_entries_keep BEFORE UPDATE ON ledger_entries
			BEGIN SELECT RAISE(ABORT, 'a ledger entry is never changed'); END`,
		"ledger_entries ledger_entries_stay": `CREATE TRIGGER ledger_entries_stay BEFORE DELETE ON ledger_entries
			BEGIN SELECT RAISE(ABORT, 'a ledger entry is never removed'); END`,
		"recharge_transfers recharge_transfers_keep": `CREATE TRIGGER recharge_transfers_keep BEFORE UPDATE
			ON recharge_transfers WHEN OLD.state = 'final' BEGIN SELECT RAISE(ABORT, 'a final transfer is never changed'); END`,
		"recharge_transfers recharge_transfers_stay": `CREATE TRIGGER recharge_transfers_stay BEFORE DELETE
			ON recharge_transfers WHEN OLD.state = 'final' BEGIN SELECT RAISE(ABORT, 'a final transfer is never removed'); END`,
		"audit_actions audit_actions_keep": `CREATE TRIGGER audit_actions_keep BEFORE UPDATE ON audit_actions
			BEGIN SELECT RAISE(ABORT, 'an action of an operator is never changed'); END`,
		"audit_actions audit_actions_stay": `CREATE TRIGGER audit_actions_stay BEFORE DELETE ON audit_actions
			WHEN OLD.at >= (SELECT at FROM audit_actions ORDER BY seq DESC LIMIT 1) - 63072000000000
			BEGIN SELECT RAISE(ABORT, 'an action of an operator is kept for 730 days'); END`,
		"usage_hours usage_hours_late": `CREATE TRIGGER usage_hours_late AFTER UPDATE ON usage_hours
			WHEN OLD.counted = 1 BEGIN ` + lateUsage + ` END`,
	}
	postgresGuards = map[string]string{
		"ledger_entries ledger_entries_keep": `CREATE TRIGGER ledger_entries_keep BEFORE DELETE OR UPDATE ON ledger_entries
			FOR EACH ROW EXECUTE FUNCTION refuse_ledger_change()
			BEGIN RAISE EXCEPTION 'a ledger entry is never changed or removed'; END`,
		"ledger_entries ledger_entries_stay": `CREATE TRIGGER ledger_entries_stay BEFORE TRUNCATE ON ledger_entries
			FOR EACH STATEMENT EXECUTE FUNCTION refuse_ledger_change()
			BEGIN RAISE EXCEPTION 'a ledger entry is never changed or removed'; END`,
		"recharge_transfers recharge_transfers_keep": `CREATE TRIGGER recharge_transfers_keep BEFORE DELETE OR UPDATE
			ON recharge_transfers FOR EACH ROW WHEN (old.state = 'final'::text) EXECUTE FUNCTION refuse_transfer_change()
			BEGIN RAISE EXCEPTION 'a final transfer is never changed or removed'; END`,
		"recharge_transfers recharge_transfers_stay": `CREATE TRIGGER recharge_transfers_stay BEFORE TRUNCATE
			ON recharge_transfers FOR EACH STATEMENT EXECUTE FUNCTION refuse_transfer_change()
			BEGIN RAISE EXCEPTION 'a final transfer is never changed or removed'; END`,
		"audit_actions audit_actions_keep": `CREATE TRIGGER audit_actions_keep BEFORE DELETE OR UPDATE ON audit_actions
			FOR EACH ROW EXECUTE FUNCTION refuse_audit_change()
			BEGIN IF TG_OP = 'UPDATE' THEN RAISE EXCEPTION 'an action of an operator is never changed'; END IF;
			-- 730 days before the newest action.
			IF OLD.at >= (SELECT at FROM audit_actions ORDER BY seq DESC LIMIT 1) - 63072000000000 THEN
			RAISE EXCEPTION 'an action of an operator is kept for 730 days'; END IF; RETURN OLD; END`,
		"usage_hours usage_hours_late": `CREATE TRIGGER usage_hours_late AFTER UPDATE ON usage_hours
			FOR EACH ROW WHEN (old.counted = 1) EXECUTE FUNCTION count_late_usage() BEGIN ` + lateUsage + ` RETURN NULL; END`,
	}
)

const lateUsage = `UPDATE agent_hours SET up = up + NEW.up - OLD.up, down = down + NEW.down - OLD.down,
	connections = connections + NEW.connections - OLD.connections, charged = charged + NEW.charged - OLD.charged,
	refunded = refunded + NEW.refunded - OLD.refunded, recharged = recharged + NEW.recharged - OLD.recharged
	WHERE agent_id = NEW.agent_id AND hour = NEW.hour AND of_sessions = CASE NEW.session_id WHEN '' THEN 0 ELSE 1 END;`

const (
	sqliteTriggers = `SELECT tbl_name || ' ' || name, sql FROM sqlite_master WHERE type = 'trigger'
		AND tbl_name IN (` + guardedTables + `)`
	postgresTriggers = `SELECT c.relname || ' ' || t.tgname, pg_get_triggerdef(t.oid, true) || ' ' || p.prosrc ||
		CASE WHEN t.tgenabled IN ('O', 'A') THEN '' ELSE ' disabled' END
		FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
		WHERE NOT t.tgisinternal AND c.relname IN (` + guardedTables + `) AND c.oid = to_regclass(c.relname::text)`
)

// findUnguarded compares the triggers with those that the migrations make.
func (p *Prover) findUnguarded(ctx context.Context, conn engine.Conn) (faults []ports.Fault, err error) {
	guards, query := sqliteGuards, sqliteTriggers
	if p.postgres {
		guards, query = postgresGuards, postgresTriggers
	}
	found := map[string]string{}
	err = conn.Rows(ctx, query, nil, func(row engine.Row) error {
		var name, text string
		err := row.Scan(&name, &text)
		found[name] = text
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("verify that %s: %w", guarded, err)
	}
	add := func(name, detail string) {
		table, trigger, _ := strings.Cut(name, " ")
		faults = append(faults, ports.Fault{Rule: guarded, Where: trigger, Detail: detail + " on " + table})
	}
	for _, name := range slices.Sorted(maps.Keys(guards)) {
		switch text, ok := found[name]; {
		case !ok:
			add(name, "no trigger")
		case !slices.Equal(words(text), words(guards[name])):
			add(name, "another trigger than the service's")
		}
		delete(found, name)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		add(name, "a trigger that is not the service's")
	}
	return faults, nil
}

// words are those of a statement. SQLite quotes the name of a table in a trigger when it is renamed.
func words(statement string) []string { return strings.Fields(strings.ReplaceAll(statement, `"`, "")) }
