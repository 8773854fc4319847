package proof

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// actionsStay is the name of the rule by which the actions of operators stay as they were when they were
// proved.
const actionsStay = "no action of an operator that was proved has changed"

// actionProof is the digest of the first actions of a UTC month.
type actionProof struct {
	N      int    `json:"n"`
	Digest string `json:"digest"` // hexadecimal
}

// action is what is proved of a row of audit_actions. A digest holds all of it.
type action struct {
	ID, Who, Via, Name, Subject, Reason, Ref, Details string
	At                                                int64
}

// actionAge is how old an action must be to be proved: what is stored later has a higher seq then.
const actionAge = 10 * time.Minute

// keepActions is how long actions are kept, by the newest of them.
const keepActions = 730 * 24 * time.Hour

var actionSelect = "SELECT " + strings.Join(column.Names(new(action)), ", ") +
	" FROM audit_actions WHERE at < ?1 ORDER BY seq"

// digestActions returns the digests of the months in which actions have the given numbers; the other
// months, and all of a month without a number, are complete. There are at most 730 days of them.
func digestActions(
	ctx context.Context, conn engine.Conn, before int64, first map[string]actionProof,
) (map[string]actionProof, error) {
	type chain struct {
		n      int
		digest [sha256.Size]byte
	}
	chains := map[string]*chain{}
	var a action
	var buffer []byte
	into := column.Targets(&a)
	err := conn.Rows(ctx, actionSelect, []any{before}, func(row engine.Row) error {
		if err := row.Scan(into...); err != nil {
			return err
		}
		month := monthOf(a.At)
		c := chains[month]
		if c == nil {
			c = &chain{}
			chains[month] = c
		}
		if p, bounded := first[month]; bounded && c.n == p.N {
			return nil
		}
		b := append(buffer[:0], c.digest[:]...)
		for _, text := range [...]string{a.ID, a.Who, a.Via, a.Name, a.Subject, a.Reason, a.Ref, a.Details} {
			b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
			b = append(b, text...)
		}
		buffer = binary.BigEndian.AppendUint64(b, uint64(a.At))
		c.n, c.digest = c.n+1, sha256.Sum256(buffer)
		return nil
	})
	digests := map[string]actionProof{}
	for month, c := range chains {
		digests[month] = actionProof{c.n, hex.EncodeToString(c.digest[:])}
	}
	return digests, work.Wrap("read the actions of operators", err)
}

func monthOf(at int64) string { return column.Time(at).Format("2006-01") }

// findChangedActions compares the actions with their digests. A month of which the oldest may have been
// removed, as they are after 730 days, is not compared.
func findChangedActions(
	ctx context.Context, conn engine.Conn, proved map[string]actionProof,
) (faults []ports.Fault, err error) {
	if len(proved) == 0 {
		return nil, nil
	}
	var newest int64
	if err := conn.Row("SELECT COALESCE(MAX(at), 0) FROM audit_actions", nil).Scan(&newest); err != nil {
		return nil, work.Wrap("find the newest action of an operator", err)
	}
	digests, err := digestActions(ctx, conn, newest+1, proved)
	if err != nil {
		return nil, err
	}
	oldest := monthOf(column.Micros(column.Time(newest).Add(-keepActions)))
	for _, month := range slices.Sorted(maps.Keys(proved)) {
		if digests[month] != proved[month] && (newest == 0 || month > oldest) {
			faults = append(faults, ports.Fault{Rule: actionsStay, Where: month, Detail: "one of the first of the month"})
		}
	}
	return faults, nil
}

// proveActions proves the actions that are old enough, unless one that was proved has changed.
func (p newProof) proveActions(ctx context.Context) error {
	faults, err := findChangedActions(ctx, p.conn, p.Actions)
	if err != nil || len(faults) > 0 {
		return err // the complete proof names it
	}
	p.Actions, err = digestActions(ctx, p.conn, column.Micros(p.now.Add(-actionAge)), nil)
	return err
}

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
