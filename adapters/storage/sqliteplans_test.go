package storage_test

import (
	"context"
	"errors"
	"regexp"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// readCalls are what calls of agents and the pages of the operator read.
func readCalls() map[string]func(context.Context, ports.Tx) error {
	page := domain.Page{Number: 3, Size: 20}
	from, to := now.AddDate(0, -1, 0), now.AddDate(0, 0, 1)
	sessions := func(f ports.SessionFilter) func(context.Context, ports.Tx) error {
		return func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Sessions().List(ctx, "agt_1", f, page)
			_, errKeys := tx.Sessions().ListByKey(ctx, "agt_1", f)
			return errors.Join(err, errKeys)
		}
	}
	margins := func(by ports.MarginKey) func(context.Context, ports.Tx) error {
		return func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Overview().Margins(ctx, from, to, by)
			_, errList := tx.Overview().Deliveries(ctx, from, to, by)
			return errors.Join(err, errList)
		}
	}
	return map[string]func(context.Context, ports.Tx) error{
		"a list": sessions(ports.SessionFilter{}), "by status": sessions(ports.SessionFilter{Status: session.Expired}),
		"by product": sessions(ports.SessionFilter{ProductNo: "p"}), "by type": sessions(ports.SessionFilter{Type: session.Dynamic}),
		"by product and status": sessions(ports.SessionFilter{ProductNo: "p", Status: session.Active}),
		"a session": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Sessions().Read(ctx, "agt_1", "sess_1")
			_, errNewest := tx.Sessions().Newest(ctx, "agt_1", "key_1", "p")
			_, errLive := tx.Sessions().Live(ctx, "agt_1")
			_, errDue := tx.Sessions().Unbooked(ctx, "agt_1")
			_, errKey := tx.Sessions().KeyUnbooked(ctx, "agt_1", "key_1")
			return errors.Join(ignored(err), ignored(errNewest), errLive, errDue, errKey)
		},
		"transactions": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Statements().Entries(ctx, "agt_1", ports.LedgerFilter{}, page)
			_, errKeys := tx.Statements().EntriesByKey(ctx, "agt_1", ports.LedgerFilter{})
			return errors.Join(err, errKeys)
		},
		"hours": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Statements().Hours(ctx, "agt_1", from, to)
			_, errKey := tx.Statements().KeyHours(ctx, "agt_1", "key_1", from, to)
			_, errSession := tx.Statements().SessionHours(ctx, "agt_1", "sess_1", from, to)
			_, _, errPage := tx.Statements().SessionTotalsPage(ctx, "agt_1", from, to, page)
			return errors.Join(err, errKey, errSession, errPage)
		},
		"a statement": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Statements().Statement(ctx, "agt_1", from, to)
			_, errItems := tx.Statements().StatementItems(ctx, "agt_1", from, to, page)
			_, errKeys := tx.Statements().StatementByKey(ctx, "agt_1", "", from, to)
			_, errKey := tx.Statements().KeyItems(ctx, "agt_1", "key_1", from, to, page)
			return errors.Join(err, errItems, errKeys, errKey)
		},
		"margin by day": margins(ports.ByDay), "margin by agent": margins(ports.ByAgent),
		"margin by provider": margins(ports.ByProvider), "margin by product": margins(ports.ByProduct),
		"the operator's pages": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Overview().Accounts(ctx, from, to)
			_, errReceived := tx.Overview().Received(ctx, from, to)
			_, errRegistered := tx.Overview().Registered(ctx, from, to)
			_, errLive := tx.Overview().Live(ctx)
			_, errDue := tx.Overview().Unbooked(ctx)
			_, errList := tx.Overview().Sessions(ctx, ports.OverviewFilter{AgentID: "agt_1"}, page)
			return errors.Join(err, errReceived, errRegistered, errLive, errDue, errList)
		},
	}
}

func ignored(err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}

// wide matches a line of a plan that reads a whole table, or all that an agent has in one.
var wide = regexp.MustCompile(`(?m)^(SCAN (?:e|h|s|u|o|r|m|sessions|ledger_entries|usage_hours|upstream_orders)\b.*|SEARCH .*\(agent_id=\?\))$`)

// allowed are such lines that read little, or of what a call asks for, by why.
var allowed = map[string][]string{
	"a row or some of each agent": {"SEARCH ledger_counted USING PRIMARY KEY (agent_id=?)", "by status: SEARCH s USING PRIMARY KEY (agent_id=?)",
		"by type: SEARCH s USING PRIMARY KEY (agent_id=?)"}, // session_counts
	"a page, in the order of the index":  {"a list: SEARCH s USING COVERING INDEX sessions_agent (agent_id=?)"},
	"what a part of the query has found": {"a statement: SCAN h", "hours: SCAN h"},
	"the sums of an agent's keys": {"SEARCH s USING INDEX sessions_buyer (agent_id=?)",
		"transactions: SEARCH e USING INDEX ledger_entries_agent (agent_id=?)", "hours: SEARCH h USING PRIMARY KEY (agent_id=?)"},
	"the sessions with use that is not charged yet":    {"SEARCH s USING INDEX sessions_unbooked (agent_id=?)"},
	"how many sessions an agent has, for the operator": {"the operator's pages: SEARCH sessions USING COVERING INDEX sessions_buyer (agent_id=?)"},
}

// SQLite goes by no statistics, so a plan is the same for any number of rows: what reads a table, or all that an agent has in
// it, is named above. The numbers of rows that PostgreSQL reads are counted in test/growth.
func TestReadsOfSQLiteFindWhatTheyNeed(t *testing.T) {
	t.Parallel()
	st := openStore(t)
	may := map[string]bool{}
	for _, lines := range allowed {
		for _, line := range lines {
			may[line] = false
		}
	}
	for name, call := range readCalls() {
		plans, err := st.Plans(t.Context(), call)
		if err != nil || len(plans) == 0 {
			t.Errorf("%s: %d plans, %v", name, len(plans), err)
		}
		for _, plan := range plans {
			for _, line := range wide.FindAllString(plan, -1) {
				as := line
				if _, everywhere := may[line]; !everywhere {
					as = name + ": " + line
				}
				if _, named := may[as]; !named {
					t.Errorf("%s\n%s", as, plan)
					continue
				}
				may[as] = true
			}
		}
	}
	for line, used := range may {
		if !used {
			t.Errorf("nothing reads by %q any more", line)
		}
	}
}
