package rows

import (
	"slices"

	"agentproxy/adapters/storage/engine"
)

// Ahead declares how rows of a Table are read ahead for all units, or views, that share them: on PostgreSQL, by arrays
// of what they are found by.
type Ahead[K comparable, R any] struct {
	// Lock is a query that locks rows in the order of their keys, where Query joins them with others: what is beside a
	// row is read after the wait for it.
	Lock string
	// What names Query, and Locked ends it where it locks the rows itself.
	What, Query, Locked string
	// Scan scans a row of Query.
	Scan func(row engine.Row) (K, R, error)
}

// LockAhead queues the query that locks rows.
func (t *Table[K, R]) LockAhead(p engine.Pipeline, arrays ...[]string) {
	p.Queue("lock to "+t.Ahead.What, t.Ahead.Lock, args(arrays), nil)
}

// ReadAhead queues the query that reads rows, for units or for views, which lock nothing. It loads them, and calls
// loaded for each, unless that is nil.
func (t *Table[K, R]) ReadAhead(s *Set, p engine.Pipeline, units bool, loaded func(K, R), arrays ...[]string) {
	query := t.Ahead.Query
	if units {
		query += t.Ahead.Locked
	}
	p.Queue(t.Ahead.What, query, args(arrays), func(row engine.Row) error {
		k, r, err := t.Ahead.Scan(row)
		if err != nil {
			return err
		}
		t.Load(s, k, r)
		if loaded != nil {
			loaded(k, r)
		}
		return nil
	})
}

func args(arrays [][]string) []any {
	list := make([]any, len(arrays))
	for i, array := range arrays {
		list[i] = slices.Clone(array)
	}
	return list
}
