package httpapi_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentproxy/ports"
)

func TestTheReportIsPagedWhenAPageIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	var ids []string
	for range 3 {
		r := w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync","traffic_gb":0.1}}`, a.as).want(201)
		ids = append(ids, r.str("data.session_id"))
	}
	w.must(w.store.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		for _, id := range ids {
			hour := w.clock.Now().Truncate(time.Hour)
			if err := tx.Traffic().Record(ctx, a.ID, id, hour, ports.Totals{Up: 1_000_000, Connections: 1}); err != nil {
				return err
			}
		}
		return nil
	}))
	whole := w.do("GET", "/v1/billing/usage-report", "", a.as).want(200)
	if whole.at("data.pagination") != nil || whole.str("data.items.2.session_id") != ids[0] {
		t.Errorf("without a page: %s", whole.body)
	}
	path, seen := "/v1/billing/usage-report?period=week&page_size=2", []string{}
	for path != "" {
		rows := w.do("GET", path, "", a.as, header("Accept", "text/csv")).want(200)
		page := w.do("GET", path, "", a.as).want(200)
		if page.num("data.totals.sessions") != 3 || page.num("data.totals.used_gb") != 0.003 || page.num("data.pagination.total") != 3 ||
			page.num("data.pagination.page_size") != 2 {
			t.Errorf("%s: %s", path, page.body)
		}
		for _, row := range rows.table(t)[1:] {
			seen = append(seen, row[0])
		}
		path, _, _ = strings.Cut(strings.TrimPrefix(rows.header.Get("Link"), "<"), ">")
	}
	if len(seen) != 3 || seen[0] != ids[2] || seen[1] != ids[1] || seen[2] != ids[0] {
		t.Errorf("the pages have %v, want %v from the last", seen, ids)
	}
	w.do("GET", "/v1/billing/usage-report?page=0", "", a.as).refused(400, "INVALID_REQUEST")
	w.do("GET", "/v1/billing/usage-report?page=1&cursor=c1", "", a.as).refused(400, "INVALID_REQUEST")
}
