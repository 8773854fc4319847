package sessions

import (
	"strconv"
	"strings"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/column"
	"agentproxy/domain/session"
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
	if f.Status != "" {
		where += " AND " + StatusIs("s.", f.Status)
	}
	add(f.Type != "", "s.type = ", string(f.Type), "")
	add(f.ProductNo != "", "s.product_no = ", f.ProductNo, "")
	add(f.Key != "", "s.bought_by = ", f.Key, "")
	add(f.Country != "", "s.country = ", f.Country, "")
	add(!f.From.IsZero(), "s.created_at >= ", column.Micros(f.From), "")
	add(!f.To.IsZero(), "s.created_at < ", column.Micros(f.To), "")
	// Unlike LIKE this has no wildcards, and regards case in both databases.
	if f.Part != "" {
		args = append(args, f.Part)
		no := "?" + strconv.Itoa(len(args))
		where += " AND (replace(s.id, " + no + ", '') <> s.id OR replace(s.exits, " + no + ", '') <> s.exits)"
	}
	add(f.LabelKey != "", "replace(s.labels, ", "\n"+codec.LabelText(f.LabelKey, f.LabelValue), ", '') <> s.labels")
	return where, args
}

// StatusIs has the words of a partial index: of sessions that are not counted for a state in which they live, which
// they all are, else of those that have ended. of is the prefix of columns.
func StatusIs(of string, status session.Status) string {
	switch status {
	case session.Creating, session.Active:
		return of + "status = '" + string(status) + "' AND " + of + "counted = 0"
	case session.Terminated, session.Expired, session.Failed:
		return of + "status = '" + string(status) + "'"
	}
	return "FALSE"
}

// Live are the states of a session that can still cost or give something. Such a session is not
// counted: the queries repeat the words of the partial index, or it is not used.
const Live = "counted = 0 AND status IN ('creating', 'active')"

// Ended holds for a session s that has ended.
const Ended = "s.status IN ('terminated', 'expired', 'failed')"

// Uncounted has the words of the partial index.
const Uncounted = "s.counted = 0 AND " + Ended

// Unbooked is true of what may have used more than it was charged for: that is settled later. It has the words of the
// partial index.
const Unbooked = "s.settle_at > 0 AND s.held_trial + s.held_own > 0 AND s.type = 'dynamic' AND s.up + s.down > 0"

// countOf counts the sessions of a list. Every session of an agent has a number, and those that ended
// are counted by what is counted of them. open is a hint for the index of those that are not.
func countOf(where string, f ports.SessionFilter, open string) string {
	kinds := ports.SessionFilter{Status: f.Status, Type: f.Type, ProductNo: f.ProductNo}
	switch {
	case f == ports.SessionFilter{}:
		return "SELECT COALESCE(MAX(s.ord), 0) FROM sessions s WHERE " + where
	case f != kinds || f.Status == session.Creating || f.Status == session.Active:
		return "SELECT COUNT(*) FROM sessions s WHERE " + where
	}
	// The columns are hidden from the indexes of the filters, which do not have what is counted.
	hidden := where
	for _, column := range []string{"s.status", "s.type", "s.product_no"} {
		hidden = strings.Replace(hidden, column+" = ", column+" || '' = ", 1)
	}
	query := "SELECT CAST(COALESCE((SELECT SUM(n) FROM session_counts s WHERE " + where + "), 0) AS BIGINT)" +
		" + (SELECT COUNT(*) FROM sessions s" + open + " WHERE " + hidden + " AND " + Uncounted + ")"
	if f.Status == "" {
		query += " + (SELECT COUNT(*) FROM sessions s" + open + " WHERE " + hidden + " AND " + Live + ")"
	}
	return query
}

// newestWhere selects numbers of the sessions of a list, newest first. place adds an argument. The
// indexes of a product have the status before the number, so without a status the newest of each are
// merged.
func newestWhere(where string, f ports.SessionFilter, limit, offset int, place func(any) string) string {
	query := "SELECT s.ord FROM sessions s WHERE " + where
	if f.ProductNo != "" && f.Status == "" {
		parts, each := make([]string, len(statuses)), place(limit+offset)
		for i, status := range statuses {
			parts[i] = "SELECT s.ord FROM (" + query + " AND " + StatusIs("s.", status) +
				" ORDER BY s.ord DESC LIMIT " + each + ") s"
		}
		query = "SELECT s.ord FROM (" + strings.Join(parts, " UNION ALL ") + ") s"
	}
	return query + " ORDER BY s.ord DESC LIMIT " + place(limit) + " OFFSET " + place(offset)
}

// statuses are those that a session may have.
var statuses = []session.Status{session.Creating, session.Active, session.Terminated, session.Expired, session.Failed}
