package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"agentproxy/adapters/admin/console"
	"agentproxy/domain/procurement"
	. "agentproxy/test/apptest"
)

// passing are the states that an order of a live session has only while the seller is called, or never.
var passing = []string{"planned", "sent", "refused"}

// ordersOfEveryState buys at the seller, and returns an order in each state by its name.
func (w world) ordersOfEveryState() map[string]procurement.Order {
	w.T.Helper()
	agent := w.RegisterFunded(200)
	all := map[string]procurement.Order{"unknown": w.undecided(agent), "frozen": w.undecided(agent)}
	for _, name := range []string{"refused", "confirmed", "lost", "planned", "sent"} {
		all[name] = w.order(w.Buy(agent, RemoteStatic).ID)
	}
	now := w.Clock.Now().UnixMicro()
	w.Exec(`UPDATE upstream_orders SET frozen_at = ? WHERE id = ?`, now, all["frozen"].ID)
	w.Exec(`UPDATE upstream_orders SET lost_at = ? WHERE id = ?`, now, all["lost"].ID)
	for _, name := range passing {
		w.Exec(`UPDATE upstream_orders SET status = ? WHERE id = ?`, name, all[name].ID)
	}
	return all
}

// rowOf returns the row of a page with an id; empty: it has none.
func rowOf(page, id string) string {
	_, after, found := strings.Cut(page, `<tr id="`+id+`"`)
	if !found {
		return ""
	}
	text, _, _ := strings.Cut(after, "</tr>")
	return text
}

func TestOrdersAreShownInEveryState(t *testing.T) {
	t.Parallel()
	w := open(t)
	all := w.ordersOfEveryState()
	code, page := w.get("/sellers")
	Equal(t, "the answer", code, http.StatusOK)
	decisions := map[string]string{"unknown": "orders-adopt orders-release", "frozen": "orders-adopt orders-release", "lost": "orders-lost"}
	for name, o := range all {
		row := rowOf(page, "order-"+o.ID)
		var offered []string
		for _, m := range regexp.MustCompile(`/do/([a-z-]+)\?subject=`+o.ID).FindAllStringSubmatch(row, -1) {
			offered = append(offered, m[1])
		}
		if got := strings.Join(offered, " "); !strings.Contains(row, o.SessionID) || got != decisions[name] {
			t.Errorf("the order that is %s offers %q, want %q:\n%s", name, got, decisions[name], row)
		}
		shown := rowOf(page, "frozen-"+o.ID) != ""
		if shown != (name == "frozen") {
			t.Errorf("the order that is %s is listed as frozen: %t", name, shown)
		}
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if seen[m[1]] {
			t.Errorf("the page has the id %s twice", m[1])
		}
		seen[m[1]] = true
	}
	for _, status := range []string{"planned", "sent", "confirmed", "refused", "unknown"} {
		_, page := w.get("/sellers?seller=remote&status=" + status)
		for name, o := range all {
			now := string(w.order(o.SessionID).Status)
			if found := rowOf(page, "order-"+o.ID) != ""; found != (now == status) {
				t.Errorf("of those that are %s the order that is %s is listed: %t", status, name, found)
			}
		}
	}
	for _, name := range passing {
		w.Exec(`UPDATE upstream_orders SET status = 'confirmed' WHERE id = ?`, all[name].ID)
	}
	w.Clock.Advance(procurement.ListingDelay)
	form := map[string][]string{"subject": {"remote"}, "by": {"ann"}, "reason": {"weekly"}, "sure": {"yes"}, "key": {"k1"}}
	rec := w.post("/do/orders-reconcile", form, "")
	_, differs, _ := strings.Cut(rec.Body.String(), "What differs")
	for _, name := range []string{"unknown", "frozen"} {
		if !strings.Contains(differs, all[name].ID) || w.order(all[name].SessionID).Status != procurement.Confirmed {
			t.Errorf("comparing, %d: the order that is %s is not listed, or not adopted:\n%s", rec.Code, name, differs)
		}
	}
}

func TestJobsAreShownInEveryState(t *testing.T) {
	t.Parallel()
	w := open(t)
	for state, want := range map[string]struct {
		words   string
		decides bool
	}{"": {"parked", true}, console.Parked: {"parked", true}, "retryable": {"to be run again", true}, "running": {"running", false},
		"available": {"waiting", true}, "scheduled": {"scheduled", true}, "completed": {"completed", false}} {
		code, page := w.get("/jobs?state=" + state)
		row := rowOf(page, "job-7")
		if code != http.StatusOK || !strings.Contains(row, ">"+want.words+"<") ||
			strings.Contains(row, "/do/jobs-retry?subject=7") != want.decides || strings.Contains(row, "/do/jobs-discard?subject=7") != want.decides {
			t.Errorf("a job that is %q: %d\n%s", state, code, row)
		}
	}
}
