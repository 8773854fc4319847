package httpapi_test

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/app/ledger"
)

// table reads an answer as CSV.
func (a *answer) table(t *testing.T) [][]string {
	t.Helper()
	if !strings.HasPrefix(a.header.Get("Content-Type"), "text/csv") {
		t.Fatalf("%s %s: %s\n%s", a.method, a.path, a.header.Get("Content-Type"), a.body)
	}
	rows, err := csv.NewReader(strings.NewReader(string(a.body))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestCSV(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	for range 3 {
		w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync","traffic_gb":0.1}}`, a.as).want(201)
	}
	w.do("POST", "/v1/billing/recharge", `{"amount":10}`, a.as).want(201)
	wallet := ledger.NewWallet(w.store, w.clock, w.ids)
	asCSV := header("Accept", "text/csv")
	t.Run("has the items of the JSON answer, and the address of those that follow", func(t *testing.T) {
		r := w.do("GET", "/v1/billing/transactions?page_size=2&page=1", "", a.as).want(200)
		first := w.do("GET", "/v1/billing/transactions?page_size=2&page=1", "", a.as, asCSV).want(200)
		rows := first.table(t)
		if len(rows) != 3 || rows[0][0] != "transaction_id" || rows[0][2] != "amount" || rows[1][0] != r.str("data.items.0.transaction_id") ||
			rows[1][2] != fmt.Sprint(r.num("data.items.0.amount")) || rows[1][8] != "" {
			t.Errorf("%q\n%s", rows, r.body)
		}
		link, found := strings.CutSuffix(strings.TrimPrefix(first.header.Get("Link"), "<"), `>; rel="next"`)
		if rest := w.do("GET", link, "", a.as, asCSV).want(200); !found || len(rest.table(t)) != 3 || rest.header.Get("Link") != "" {
			t.Errorf("link %q has %q", link, rest.body)
		}
		for path, column := range map[string]string{"/v1/billing/usage-report": "session_id", "/v1/stats/traffic": "start",
			"/v1/stats/cost": "start", "/v1/billing/recharge": "order_id"} {
			if rows := w.do("GET", path, "", a.as, asCSV).want(200).table(t); rows[0][0] != column || len(rows) < 2 && path != "/v1/billing/usage-report" {
				t.Errorf("%s: %q", path, rows)
			}
		}
	})
	t.Run("is sent when it is asked for by name", func(t *testing.T) {
		for accept, want := range map[string]bool{"text/csv": true, "TEXT/CSV, */*;q=0.1": true, "text/csv;q=0.5, application/json;q=0.4": true,
			"text/csv;q=0.4, application/json": false, "*/*": false, "text/csv;q=0": false, "": false, "text/*": false} {
			r := w.do("GET", "/v1/billing/transactions", "", a.as, header("Accept", accept)).want(200)
			if got := strings.HasPrefix(r.header.Get("Content-Type"), "text/csv"); got != want || !slices.Contains(r.header.Values("Vary"), "Accept") {
				t.Errorf("Accept %q: %v with Vary %q", accept, r.header.Get("Content-Type"), r.header.Values("Vary"))
			}
		}
		w.do("GET", "/v1/billing/transactions?type=gift", "", a.as, asCSV).refused(400, "INVALID_REQUEST")
	})
	t.Run("begins no cell with a formula", func(t *testing.T) {
		for i, reason := range []string{`=HYPERLINK("http://evil.example","x")`, "+1", "-1", "@SUM(A1)", "\t=1", "a,b\n\"c\""} {
			_, err := wallet.Adjust(t.Context(), a.ID, 1_000_000, reason)
			w.must(err)
			row := w.do("GET", "/v1/billing/transactions?page_size=1", "", a.as, asCSV).want(200).table(t)[1]
			want := "'" + reason
			if i == 5 {
				want = reason
			}
			if row[6] != want || row[2] != "1" {
				t.Errorf("%q is %q", reason, row)
			}
		}
	})
	t.Run("transactions are narrowed to a time", func(t *testing.T) {
		start := w.clock.Now()
		w.clock.Advance(time.Hour)
		_, err := wallet.Adjust(t.Context(), a.ID, 1_000_000, "later")
		w.must(err)
		at := start.Add(time.Hour).Format(time.RFC3339)
		if n := w.do("GET", "/v1/billing/transactions?from="+at, "", a.as).want(200).num("data.pagination.total"); n != 1 {
			t.Errorf("%v since then", n)
		}
		all := w.do("GET", "/v1/billing/transactions", "", a.as).want(200).num("data.pagination.total")
		if n := w.do("GET", "/v1/billing/transactions?to="+at, "", a.as).want(200).num("data.pagination.total"); n != all-1 {
			t.Errorf("%v of %v before then", n, all)
		}
		for _, query := range []string{"from=", "to=then", "from=2026-01-02&to=2026-01-01"} {
			w.do("GET", "/v1/billing/transactions?"+query, "", a.as).refused(400, "INVALID_REQUEST")
		}
	})
}
