package storage

import (
	"strconv"

	"agentproxy/adapters/storage/column"
	"agentproxy/ports"
)

func sessionWhere(agentID string, f ports.SessionFilter) (string, []any) {
	where, args := "s.agent_id = ?1", []any{agentID}
	add := func(given bool, before string, value any, after string) {
		if given {
			args = append(args, value)
			where += " AND " + before + "?" + strconv.Itoa(len(args)) + after
		}
	}
	add(f.Status != "", "s.status = ", string(f.Status), "")
	add(f.Type != "", "s.type = ", string(f.Type), "")
	add(f.ProductNo != "", "s.product_no = ", f.ProductNo, "")
	add(f.Country != "", "s.country = ", f.Country, "")
	add(!f.From.IsZero(), "s.created_at >= ", column.Micros(f.From), "")
	add(!f.To.IsZero(), "s.created_at < ", column.Micros(f.To), "")
	// Unlike LIKE this has no wildcards, and regards case in both databases.
	add(f.LabelKey != "", "replace(s.labels, ", "\n"+labelText(f.LabelKey, f.LabelValue), ", '') <> s.labels")
	return where, args
}

// live are the states of a session that can still cost or give something. Such a session is not
// counted: the queries repeat the words of the partial index, or it is not used.
const live = "counted = 0 AND status IN ('creating', 'active')"

// ended holds for a session s that has ended.
const ended = "s.status IN ('terminated', 'expired', 'failed')"

// uncounted has the words of the partial index.
const uncounted = "s.counted = 0 AND " + ended

// holdsMoney is true of what may be charged by use. A session is counted once it holds nothing, and
// the states are those that the partial index begins with.
const holdsMoney = "s.counted = 0 AND s.status IN ('creating', 'active', 'terminated', 'expired', 'failed')" +
	" AND s.held_trial + s.held_own > 0 AND s.type = 'dynamic'"
