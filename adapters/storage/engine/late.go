package engine

// Late are rows of one table that the units of a transaction insert together, right before it commits: a statement for
// each row takes more than the row. No unit reads them before that, and a failure to insert them is one of the commit.
type Late struct {
	own, kept []any // values of the running unit, and of those that have ended well
}

// Add adds the values of a row.
func (l *Late) Add(values ...any) { l.own = append(l.own, values...) }

// Values returns those of all rows that are to be inserted.
func (l *Late) Values() []any { return l.kept }

// EndUnit keeps the rows of the unit that ran, or drops them if it failed.
func (t *Transaction) EndUnit(failed bool) {
	if t.Late == nil || len(t.Late.own) == 0 {
		return
	}
	if !failed {
		t.Late.kept = append(t.Late.kept, t.Late.own...)
		t.Wrote = true
	}
	t.Late.own = t.Late.own[:0]
}
