package storage

import (
	"strconv"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/ports"
)

// queueList reads a page as sessions.List does, without waiting for the count of what the filter leaves. The
// numbers of the page are an array, of which the planner expects ten elements: in a plan for any arguments it
// expects a subquery with LIMIT to return a tenth of the agent's sessions, and would read all of them.
func (b *batch) queueList(k listKey) {
	if b.lists == nil {
		b.lists = map[listKey]*sessionPage{}
	}
	if b.workers == nil {
		b.workers = map[string][]ports.WorkerHealth{}
	}
	p := &sessionPage{}
	p.Page = k.Page
	b.lists[k] = p
	count, places, args, more := k.queries()
	b.pipe.Queue("count sessions", count, args, func(row engine.Row) error { return row.Scan(&p.Total) })
	all := append(args[:len(args):len(args)], more...)
	b.pipe.Queue("list sessions", "SELECT s.ord, "+sessionReadColumns+"WHERE s.agent_id = ?1 AND s.ord = ANY(ARRAY("+
		places+")) ORDER BY s.ord DESC", all, func(row engine.Row) error {
		var ord int64
		read, err := scanSessionRead(behind{row, []any{&ord}})
		p.Items, p.ords = append(p.Items, read), append(p.ords, ord)
		b.whole[read.ID] = true
		return err
	})
	b.pipe.Queue("read workers", workerHealthOf+"IN (SELECT l.id FROM sessions l WHERE l.agent_id = ?1"+
		" AND l.ord = ANY(ARRAY("+places+"))) ORDER BY w.seq", all, loadWorkerHealth(b.workers))
}

// queries returns the count of a list, and the query for the numbers of a page and of the session after
// it, with the arguments of both and those of the second alone.
func (k listKey) queries() (count, places string, args, more []any) {
	where, args := sessionWhere(k.agentID, k.Filter)
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

// list returns a page that was read ahead.
func (b *batch) list(k listKey) (domain.List[ports.SessionRead], error) {
	p, ok := b.lists[k]
	if !ok {
		return domain.List[ports.SessionRead]{}, b.escape()
	}
	list := p.List
	if len(list.Items) > k.Page.Size {
		list.Items = list.Items[:k.Page.Size]
		list.Next = p.ords[k.Page.Size-1]
	}
	return list, nil
}
