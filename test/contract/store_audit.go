package contract

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/audit"
	"agentproxy/ports"
)

var auditClaims = []claim{
	{"an operator's action is read back as it was written, the newest first", auditRoundTrip},
	{"an action of a reference is kept once for each name", auditOnce},
	{"an action is neither changed nor removed by anybody", auditFixed},
	{"actions older than their time go with new ones", auditRetention},
}

func actionOf(n int, at time.Time) audit.Action {
	return audit.Action{ID: fmt.Sprint("act_", n), At: at, By: "ann", Via: audit.Console, Name: "agent disable",
		Subject: fmt.Sprint("agt_", n), Reason: `<b>"why"</b>`, Details: "x=1"}
}

func keep(t *testing.T, st ports.Store, list ...audit.Action) {
	t.Helper()
	for _, a := range list {
		update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.AuditTrail().Append(ctx, a) })
	}
}

func actions(t *testing.T, st ports.Store, f audit.Filter, page domain.Page) (list domain.List[audit.Action]) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		list, err = tx.AuditTrail().List(ctx, f, page)
		return err
	})
	return list
}

var firstPage = domain.Page{Number: 1, Size: 10}

func auditRoundTrip(t *testing.T, st ports.Store) {
	a, b, c := actionOf(1, storeNow), actionOf(2, storeNow.Add(time.Second)), actionOf(3, storeNow.Add(2*time.Second))
	b.By, c.Name = "bob", "adjust"
	keep(t, st, a, b, c)
	for _, x := range []struct {
		name string
		f    audit.Filter
		page domain.Page
		want []audit.Action
		of   int
	}{
		{"all", audit.Filter{}, firstPage, []audit.Action{c, b, a}, 3},
		{"the second page", audit.Filter{}, domain.Page{Number: 2, Size: 2}, []audit.Action{a}, 3},
		{"of a user", audit.Filter{By: "bob"}, firstPage, []audit.Action{b}, 1},
		{"of a name", audit.Filter{Name: "adjust"}, firstPage, []audit.Action{c}, 1},
		{"about a subject", audit.Filter{Subject: "agt_1"}, firstPage, []audit.Action{a}, 1},
		{"of a time", audit.Filter{From: b.At, To: c.At}, firstPage, []audit.Action{b}, 1},
		{"none", audit.Filter{By: "bob", Name: "adjust"}, firstPage, nil, 0},
	} {
		got := actions(t, st, x.f, x.page)
		if diff := cmp.Diff(x.want, got.Items); diff != "" || got.Total != x.of {
			t.Errorf("%s: %d\n%s", x.name, got.Total, diff)
		}
	}
}

func auditOnce(t *testing.T, st ports.Store) {
	a, again, other := actionOf(1, storeNow), actionOf(2, storeNow), actionOf(3, storeNow)
	a.Ref, again.Ref, other.Ref = "r", "r", "r"
	other.Name = "refund"
	keep(t, st, a, again, other, actionOf(4, storeNow), actionOf(5, storeNow))
	if got := actions(t, st, audit.Filter{}, firstPage); got.Total != 4 {
		t.Errorf("%d actions are kept", got.Total)
	}
}

func auditFixed(t *testing.T, st ports.Store) {
	w, ok := st.(interface{ Writer() *sql.DB })
	if !ok {
		t.Skip("the store shows no database")
	}
	keep(t, st, actionOf(1, storeNow), actionOf(2, storeNow.Add(audit.Keep)))
	for _, statement := range []string{"UPDATE audit_actions SET who = 'unknown'", "DELETE FROM audit_actions"} {
		if _, err := w.Writer().ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s: is done", statement)
		}
	}
}

func auditRetention(t *testing.T, st ports.Store) {
	keep(t, st, actionOf(1, storeNow), actionOf(2, storeNow.Add(time.Second)))
	late := actionOf(3, storeNow.Add(audit.Keep+time.Microsecond))
	keep(t, st, late)
	got := actions(t, st, audit.Filter{}, firstPage)
	if len(got.Items) != 2 || got.Items[0].ID != late.ID || got.Items[1].ID != "act_2" {
		t.Errorf("%d actions are left: %+v", got.Total, got.Items)
	}
}
