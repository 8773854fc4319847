package rows

import "slices"

// Table declares the rows of a table that units find by a key.
type Table[K comparable, R any] struct {
	// Order is the place of the table among those that a Set writes: tables with keys that others
	// change too come in the order in which all units lock them. No two have the same.
	Order int
	// Find reads and locks a row that is not in memory. It returns false if there is none.
	Find func(s *Set, k K) (R, bool, error)
	// Read is as Find, for the method Look. It locks nothing.
	Read func(s *Set, k K) (R, bool, error)
	// Ahead is how rows are read ahead, for tables of which that is done.
	Ahead Ahead[K, R]
	// Compare is the order in which rows are written, nil for that in which they were changed.
	Compare func(a, b K) int
	// Write writes rows that were changed.
	Write func(s *Set, w Writer, changed []Change[K, R]) error
	// Written returns a row as the table has it once it is written, for rows that note what of them was changed. Nil
	// returns the same.
	Written func(R) R
	// Keep has the units of the next transaction find the rows in memory, up to MaxKept of them, where the program alone
	// writes. What a row has of other tables must not change without it: see Amend.
	Keep bool
	// Unread reports whether units that share a transaction, and named what they read, take a row that is not in memory
	// for absent, given which others are. The database refuses a row that is not, and with it the transaction. Nil is
	// false.
	Unread func(read func(K) bool, k K) bool
}

// Change is a row that was changed. Stored is whether the table had it.
type Change[K comparable, R any] struct {
	Key    K
	Row    R
	Stored bool
}

// Value returns the row.
func (c Change[K, R]) Value() R { return c.Row }

// held is what a Set has of a Table.
type held[K comparable, R any] struct {
	table     *Table[K, R]
	base, own keyed[K, row[R]] // of the units that have ended, and of the running one
	changes   int
	dirty     []K // of base, that were changed
	absent    int // rows of base that are known to be absent
}

// MaxKept is how many rows of a table are kept for the next transaction.
const MaxKept = 1024

// row is a row in memory. One that is neither stored nor changed is known to be absent.
type row[R any] struct {
	value           R
	stored, changed bool
	no              int // of the change
}

func (r *row[R]) absent() bool { return !r.stored && !r.changed }

func (t *Table[K, R]) of(s *Set) *held[K, R] {
	if s.tables[t.Order] == nil {
		s.tables[t.Order] = &held[K, R]{table: t}
	}
	return s.tables[t.Order].(*held[K, R])
}

// put replaces a row of the units that have ended.
func (h *held[K, R]) put(k K, r row[R]) {
	old := h.base.get(k)
	if old != nil && old.absent() {
		h.absent--
	}
	if r.absent() {
		h.absent++
	}
	if r.changed && (old == nil || !old.changed) {
		h.dirty = append(h.dirty, k)
	}
	h.base.put(k, r)
}

func (h *held[K, R]) get(k K) (r row[R], ok bool) {
	if r := h.own.get(k); r != nil {
		return *r, true
	}
	if r := h.base.get(k); r != nil {
		return *r, true
	}
	return r, false
}

// Get returns the row with a key as the unit has it. It returns false if there is none.
func (t *Table[K, R]) Get(s *Set, k K) (R, bool, error) {
	return t.get(s, k, t.Find, s.in != nil)
}

// Look is as Get, without a lock: where others write at the same time, a unit does not keep what it found.
func (t *Table[K, R]) Look(s *Set, k K) (R, bool, error) {
	return t.get(s, k, t.Read, s.in != nil && !s.conn.Concurrent())
}

func (t *Table[K, R]) get(s *Set, k K, find func(*Set, K) (R, bool, error), keep bool) (R, bool, error) {
	h := t.of(s)
	if r, ok := h.get(k); ok {
		return r.value, r.stored || r.changed, nil
	}
	var none R
	switch {
	case s.named && h.unread(k):
		return none, false, nil
	case s.ahead:
		return none, false, s.Escape()
	}
	found, ok, err := find(s, k)
	if err != nil {
		return none, false, err
	}
	if keep {
		h.put(k, row[R]{value: found, stored: ok})
	}
	return found, ok, nil
}

func (h *held[K, R]) unread(k K) bool {
	return h.table.Unread != nil && h.table.Unread(func(k K) bool { _, ok := h.get(k); return ok }, k)
}

// Peek returns a row that is in memory. It returns false if there is none, or it was not read.
func (t *Table[K, R]) Peek(s *Set, k K) (R, bool) {
	r, _ := t.of(s).get(k)
	return r.value, r.stored || r.changed
}

// Put replaces a row that Get returned, or adds one that it did not find.
func (t *Table[K, R]) Put(s *Set, k K, value R) error {
	h := t.of(s)
	r, read := h.get(k)
	if s.ahead && !read && !h.unread(k) {
		return s.Escape()
	}
	if err := s.change(); err != nil {
		return err
	}
	if !r.changed {
		h.changes++
		r.no = h.changes
	}
	r.value, r.changed = value, true
	if s.shared {
		h.own.put(k, r)
	} else {
		h.put(k, r)
	}
	return nil
}

// Amend replaces a row in memory, if it is there, by one that the table has too: what differs is of other tables.
func (t *Table[K, R]) Amend(s *Set, k K, amend func(R) R) {
	h := t.of(s)
	r, read := h.get(k)
	if !read || r.absent() {
		return
	}
	r.value = amend(r.value)
	if s.shared {
		h.own.put(k, r)
	} else {
		h.put(k, r)
	}
}

// Insert adds a row that the table does not have.
func (t *Table[K, R]) Insert(s *Set, k K, value R) error {
	h := t.of(s)
	if _, read := h.get(k); s.shared && !read {
		if err := s.change(); err != nil {
			return err
		}
		h.own.put(k, row[R]{})
	}
	return t.Put(s, k, value)
}

// Missing returns those of some keys whose rows are not in memory, for a query that loads them. A unit that shares
// a transaction runs again alone if there is one.
func (t *Table[K, R]) Missing(s *Set, keys []K) (missing []K, err error) {
	h := t.of(s)
	for _, k := range keys {
		if _, ok := h.get(k); !ok {
			missing = append(missing, k)
		}
	}
	if s.ahead && len(missing) > 0 {
		return nil, s.Escape()
	}
	return missing, nil
}

// Dirty reports whether one of some rows was changed and is not written yet.
func (t *Table[K, R]) Dirty(s *Set, keys ...K) bool {
	h := t.of(s)
	return slices.ContainsFunc(keys, func(k K) bool { r, ok := h.get(k); return ok && r.changed })
}

// Load adds a row that was read ahead and locked.
func (t *Table[K, R]) Load(s *Set, k K, value R) {
	t.of(s).put(k, row[R]{value: value, stored: true})
}

// Ask notes rows that are read ahead, before they are loaded: those that are not do not exist.
func (t *Table[K, R]) Ask(s *Set, keys ...K) {
	h := t.of(s)
	for _, k := range keys {
		h.put(k, row[R]{})
	}
}

// Always is an Unread that is always true.
func Always[K comparable](func(K) bool, K) bool { return true }

// Changed returns the rows that the units of the Set have changed, in the order in which they are written.
func (t *Table[K, R]) Changed(s *Set) []Change[K, R] { return t.of(s).changed() }

func (h *held[K, R]) changed() []Change[K, R] {
	type found struct {
		key K
		*row[R]
	}
	list := Map(h.dirty, func(k K) found { return found{k, h.base.get(k)} })
	if len(list) > 1 {
		slices.SortFunc(list, func(a, b found) int {
			if compare := h.table.Compare; compare != nil {
				return compare(a.key, b.key)
			}
			return a.no - b.no
		})
	}
	return Map(list, func(f found) Change[K, R] { return Change[K, R]{f.key, f.value, f.stored} })
}

func (h *held[K, R]) end(keep bool) {
	if keep {
		for _, p := range h.own.list {
			h.put(p.key, p.value)
		}
	}
	h.own.clear()
}

func (h *held[K, R]) flush(s *Set, w Writer) error {
	list := h.changed()
	if len(list) == 0 {
		return nil
	}
	if err := h.table.Write(s, w, list); err != nil || s.ahead {
		return err
	}
	for _, k := range h.dirty {
		r := h.base.get(k)
		r.stored, r.changed = true, false
		if h.table.Written != nil {
			r.value = h.table.Written(r.value)
		}
	}
	clear(h.dirty)
	h.dirty = h.dirty[:0]
	return nil
}

// forget is called after a flush.
func (h *held[K, R]) forget() {
	h.base.clear()
	clear(h.dirty)
	h.dirty, h.absent = h.dirty[:0], 0
}

// next drops all rows where some are known to be absent, which is rare: others may insert them without reading them.
func (h *held[K, R]) next() {
	if !h.table.Keep || h.absent > 0 || len(h.base.list) > MaxKept {
		h.forget()
	}
}
