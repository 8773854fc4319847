package proxyseller

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"agentproxy/domain"
)

// orderList serves order/list, with the parameters and fields of the official clients. The
// name date_insert of the time is invented; the list is sorted by it.
func (s *Server) orderList(r *http.Request) string {
	q := r.URL.Query()
	type row struct {
		order
		base   string
		extend string
	}
	var rows []row
	for _, o := range s.orders {
		rows = append(rows, row{*o, o.number, "N"})
		for _, again := range o.renewals {
			rows = append(rows, row{again, o.number, "Y"})
		}
	}
	rows = slices.DeleteFunc(rows, func(o row) bool {
		return q.Get("status") != "" && q.Get("status") != o.status || q.Get("is_extend") != "" && q.Get("is_extend") != o.extend ||
			q.Get("order_id") != "" && !slices.Contains([]string{o.id, o.number, o.base}, q.Get("order_id"))
	})
	slices.SortStableFunc(rows, func(a, b row) int {
		by := a.at.Compare(b.at)
		switch q.Get("sort_by") {
		case "summ":
			by = cmp.Compare(a.total, b.total)
		case "status":
			by = cmp.Compare(a.status, b.status)
		}
		if q.Get("order") == "desc" {
			return -by
		}
		return by
	})
	limit, _ := strconv.Atoi(q.Get("limit"))
	if limit < 1 || limit > 100 {
		limit = 20 // invented
	}
	if s.pageLimit > 0 {
		limit = min(limit, s.pageLimit)
	}
	page, _ := strconv.Atoi(q.Get("page"))
	page = max(page, 1)
	pages := (len(rows) + limit - 1) / limit
	items := []any{}
	for _, o := range rows[min((page-1)*limit, len(rows)):min(page*limit, len(rows))] {
		items = append(items, map[string]any{"id": o.id, "order_id": o.id, "order_number": o.number, "base_order_number": o.base,
			"summ": fmt.Sprintf("$%.2f", float64(o.total)/float64(domain.Dollar)), "items": []any{}, "auto_order": "N", "is_extend": o.extend, "status_type": o.status,
			"date_insert": o.at.Format(time.RFC3339)})
	}
	return success(map[string]any{"metadata": map[string]any{"total_pages": pages, "current_limit": limit}, "items": items})
}
