package rows

import "slices"

// Sums declares rows that units add to without reading them.
type Sums[K comparable, R any] struct {
	// Order is as that of a Table.
	Order int
	// Plus adds two additions to a row.
	Plus func(a, b R) R
	// Compare is the order in which rows are written.
	Compare func(a, b K) int
	// Write adds to rows.
	Write func(s *Set, w Writer, added []Sum[K, R]) error
}

// Sum is what is added to a row.
type Sum[K comparable, R any] struct {
	Key K
	Row R
}

type sums[K comparable, R any] struct {
	table     *Sums[K, R]
	base, own keyed[K, R]
}

func (t *Sums[K, R]) of(s *Set) *sums[K, R] {
	if s.tables[t.Order] == nil {
		s.tables[t.Order] = &sums[K, R]{table: t}
	}
	return s.tables[t.Order].(*sums[K, R])
}

// Add adds to the row with a key.
func (t *Sums[K, R]) Add(s *Set, k K, more R) error {
	if err := s.change(); err != nil {
		return err
	}
	h := t.of(s)
	h.add(&h.own, k, more)
	return nil
}

func (h *sums[K, R]) add(to *keyed[K, R], k K, more R) {
	if old := to.get(k); old != nil {
		more = h.table.Plus(*old, more)
	}
	to.put(k, more)
}

func (h *sums[K, R]) end(keep bool) {
	if keep {
		for _, p := range h.own.list {
			h.add(&h.base, p.key, p.value)
		}
	}
	h.own.clear()
}

func (h *sums[K, R]) flush(s *Set, w Writer) error {
	from := &h.base
	if !s.shared {
		from = &h.own
	}
	if len(from.list) == 0 {
		return nil
	}
	list := Map(from.list, func(p pair[K, R]) Sum[K, R] { return Sum[K, R]{p.key, p.value} })
	if len(list) > 1 {
		slices.SortFunc(list, func(a, b Sum[K, R]) int { return h.table.Compare(a.Key, b.Key) })
	}
	if !s.ahead {
		from.clear()
	}
	return h.table.Write(s, w, list)
}

func (h *sums[K, R]) forget() {}

func (h *sums[K, R]) next() { h.base.clear() }

// Inserts declares rows that units insert without reading them.
type Inserts[R any] struct {
	// Order is as that of a Table.
	Order int
	// Write inserts rows, in the order in which the units did. Nil leaves them to who calls Added.
	Write func(s *Set, w Writer, added []R) error
}

// Added returns the rows that the units of the Set have inserted, where Write is nil: who calls it writes them.
func (t *Inserts[R]) Added(s *Set) []R {
	h := t.of(s)
	if s.shared {
		return h.base
	}
	return h.own
}

type inserts[R any] struct {
	table     *Inserts[R]
	base, own []R
}

func (t *Inserts[R]) of(s *Set) *inserts[R] {
	if s.tables[t.Order] == nil {
		s.tables[t.Order] = &inserts[R]{table: t}
	}
	return s.tables[t.Order].(*inserts[R])
}

// Insert inserts a row.
func (t *Inserts[R]) Insert(s *Set, row R) error {
	if err := s.change(); err != nil {
		return err
	}
	h := t.of(s)
	h.own = append(h.own, row)
	return nil
}

func (h *inserts[R]) end(keep bool) {
	if keep {
		h.base = append(h.base, h.own...)
	}
	h.own = h.own[:0]
}

func (h *inserts[R]) flush(s *Set, w Writer) error {
	if h.table.Write == nil {
		return nil
	}
	from := &h.base
	if !s.shared {
		from = &h.own
	}
	list := *from
	if len(list) == 0 {
		return nil
	}
	if !s.ahead {
		*from = nil
	}
	return h.table.Write(s, w, list)
}

func (h *inserts[R]) forget() {}

func (h *inserts[R]) next() { h.base = nil }
