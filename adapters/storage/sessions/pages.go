package sessions

import (
	"strconv"

	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/ports"
)

// Queries returns the count of a list, and the query for the numbers of a page and of the session after
// it, with the arguments of both and those of the second alone.
func (k ListKey) Queries() (count, places string, args, more []any) {
	where, args := sessionWhere(k.AgentID, k.Filter)
	every := k.Filter == (ports.SessionFilter{})
	count = countOf(where, k.Filter, "")
	place := func(v any) string {
		more = append(more, v)
		return "?" + strconv.Itoa(len(args)+len(more))
	}
	offset := k.Page.Offset()
	switch {
	case k.Page.After > 0:
		where += " AND s.ord < " + place(k.Page.After)
		offset = 0
	case every:
		where += " AND s.ord <= (SELECT COALESCE(MAX(m.ord), 0) FROM sessions m WHERE m.agent_id = ?1) - " + place(offset)
		offset = 0
	}
	places = newestWhere(where, k.Filter, k.Page.Size+1, offset, place)
	return count, places, args, more
}

// page returns the list without the session after it.
func (p *SessionPage) page(size int) (list domain.List[ports.SessionRead]) {
	if p == nil {
		return list
	}
	list = p.List
	if len(list.Items) > size {
		list.Items = list.Items[:size]
		list.Next = p.Ords[size-1]
	}
	return list
}

// ListTable has the lists that views read ahead.
var ListTable = &rows.Table[ListKey, *SessionPage]{Order: work.ListOrder}

// ListKey is a list that views ask for.
type ListKey struct {
	AgentID string
	ports.SessionPage
}

// SessionPage is a page under way: one session more than it has, and the number of each.
type SessionPage struct {
	domain.List[ports.SessionRead]
	Ords []int64
}
