package rows_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
)

// table is a connection to a database with one table of balances.
type table struct {
	stored map[string]int64
	sent   []string
	fail   error
}

func (c *table) Context() context.Context { return context.Background() }
func (c *table) Concurrent() bool         { return true }
func (c *table) Arrays() bool             { return false }
func (c *table) Open() bool               { return true }
func (c *table) Flush() error             { return nil }
func (c *table) SQL() *sql.Conn           { return nil }
func (c *table) ORM() gorm.ConnPool       { return nil }

func (c *table) Row(query string, args []any) engine.Row {
	c.sent = append(c.sent, query)
	return found{c, args[0].(string)}
}

func (c *table) Rows(context.Context, string, []any, func(engine.Row) error) error { return nil }

func (c *table) Exec(string, []any) (int64, error) { return 0, nil }

func (c *table) Queue(what, _ string, args []any) error {
	if c.fail != nil {
		return c.fail
	}
	c.sent = append(c.sent, what)
	c.stored[args[0].(string)] = args[1].(int64)
	return nil
}

type found struct {
	*table
	id string
}

func (f found) Scan(into ...any) error {
	n, ok := f.stored[f.id]
	if !ok {
		return sql.ErrNoRows
	}
	*into[0].(*int64) = n
	return nil
}

func open(stored map[string]int64) (*table, *engine.Transaction, *rows.Set) {
	c := &table{stored: stored}
	in := &engine.Transaction{Conn: c}
	set := rows.New(c, in)
	return c, in, &set
}

func TestAUnitReadsARowOnceAndWritesItOnce(t *testing.T) {
	c, in, set := open(map[string]int64{"a": 1})
	for range 3 {
		n, ok, err := balances.Get(set, "a")
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		if err := balances.Put(set, "a", n+1); err != nil {
			t.Fatal(err)
		}
	}
	if in.Wrote || len(c.sent) != 1 {
		t.Errorf("before the flush it has sent %q", c.sent)
	}
	if !strings.HasSuffix(c.sent[0], "FOR NO KEY UPDATE OF balances") {
		t.Errorf("a row is read by %s", c.sent[0])
	}
	for range 2 { // the second has nothing to write
		if err := set.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if !in.Wrote || c.stored["a"] != 4 || len(c.sent) != 2 {
		t.Errorf("%v is stored after %q", c.stored, c.sent)
	}
}

// A statement of the unit may change what it has read, which it writes before and then reads anew.
func TestAStatementOfTheUnitForgetsWhatWasRead(t *testing.T) {
	c, _, set := open(map[string]int64{"a": 1})
	if err := balances.Put(set, "a", 2); err != nil {
		t.Fatal(err)
	}
	if err := set.Forget(); err != nil || c.stored["a"] != 2 {
		t.Fatal(c.stored, err)
	}
	c.stored["a"] = 7
	if n, _, err := balances.Get(set, "a"); n != 7 || err != nil {
		t.Errorf("it reads %d, %v", n, err)
	}
}

func TestWhatAFlushCannotWriteFailsTheTransaction(t *testing.T) {
	c, in, set := open(map[string]int64{})
	c.fail = errors.New("refused")
	if err := balances.Put(set, "a", 2); err != nil {
		t.Fatal(err)
	}
	if err := set.Flush(); err != c.fail || in.Fault() != c.fail {
		t.Errorf("%v, and the transaction has %v", err, in.Fault())
	}
	refused := c.fail
	c.fail = nil
	if err := set.Flush(); err != refused || len(c.sent) != 0 { // a part may be written
		t.Errorf("the next flush: %v, it sent %q", err, c.sent)
	}
}

func TestAViewWritesNothing(t *testing.T) {
	c := &table{stored: map[string]int64{"a": 1}}
	view := rows.New(c, nil)
	set := &view
	for range 2 {
		if n, ok, err := balances.Get(set, "a"); n != 1 || !ok || err != nil {
			t.Fatal(n, ok, err)
		}
	}
	if err := balances.Put(set, "a", 2); !errors.Is(err, engine.ErrReadOnly) || len(c.sent) != 2 ||
		strings.Contains(c.sent[0], "FOR") {
		t.Errorf("%v after %q", err, c.sent)
	}
}

// A unit that shares a transaction runs alone if it needs a row that was not read ahead, and so does a view
// that changes something.
func TestAUnitThatNeedsMoreRunsAlone(t *testing.T) {
	set := rows.NewAhead()
	balances.Ask(set, "a", "b")
	balances.Load(set, "a", 1)
	if _, ok, err := balances.Get(set, "b"); ok || err != nil {
		t.Error("what is known to be absent:", ok, err)
	}
	if _, _, err := balances.Get(set, "c"); !errors.Is(err, engine.ErrAlone) || !set.Alone() {
		t.Error("what was not read:", err)
	}
	set.End(false)
	if err := balances.Put(set, "c", 1); !errors.Is(err, engine.ErrAlone) {
		t.Error("a change of what was not read:", err)
	}
	set.End(false)
	frozen := set.Frozen()
	view := &frozen
	if err := balances.Put(view, "a", 2); !errors.Is(err, engine.ErrAlone) || !view.Alone() || set.Alone() {
		t.Error("a change by a view:", err)
	}
}

var (
	insertNotes = rows.Insert[balance]("insert notes", "notes", "")
	notes       = &rows.Inserts[balance]{Order: 1,
		Write: func(_ *rows.Set, to rows.Writer, added []balance) error { return insertNotes.Write(to, added) }}
	addTotals = rows.Add[balance]("add totals", "totals", 1)
	totals    = &rows.Sums[string, int64]{Order: 2, Compare: strings.Compare,
		Plus: func(a, b int64) int64 { return a + b },
		Write: func(_ *rows.Set, to rows.Writer, added []rows.Sum[string, int64]) error {
			return addTotals.Write(to, rows.Map(added, func(a rows.Sum[string, int64]) balance { return balance{a.Key, a.Row} }))
		}}
)

// What a unit that failed inserted or added is dropped, and tables are written in their order.
func TestWhatAFailedUnitAddedIsDropped(t *testing.T) {
	set := rows.NewAhead()
	balances.Load(set, "a", 1)
	for i, keep := range []bool{true, false, true} {
		n := int64(i + 1)
		err := cmp.Or(totals.Add(set, "t", n), notes.Insert(set, balance{"n", n}), balances.Put(set, "a", n))
		if err != nil || !set.Wrote() {
			t.Fatal(err)
		}
		set.End(keep)
	}
	c := &table{stored: map[string]int64{}}
	if err := set.WriteTo(c); err != nil {
		t.Fatal(err)
	}
	if c.stored["t"] != 4 || c.stored["n"] != 3 || c.stored["a"] != 3 ||
		!slices.Equal(c.sent, []string{"put balances", "insert notes", "insert notes", "add totals"}) {
		t.Errorf("%v is written by %q", c.stored, c.sent)
	}
}

// A row that a unit inserts is one for the units after it, and written as they leave it.
func TestARowThatIsInsertedIsWrittenAsItIsInTheEnd(t *testing.T) {
	set := rows.NewAhead()
	if err := balances.Insert(set, "n", 1); err != nil {
		t.Fatal(err)
	}
	set.End(true)
	n, ok, err := balances.Get(set, "n")
	if err := cmp.Or(err, balances.Put(set, "n", n+1)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	set.End(true)
	if err := balances.Insert(set, "dropped", 1); err != nil {
		t.Fatal(err)
	}
	set.End(false)
	c := &table{stored: map[string]int64{}}
	if err := set.WriteTo(c); err != nil || len(c.sent) != 1 || c.stored["n"] != 2 {
		t.Errorf("%v is written by %q, %v", c.stored, c.sent, err)
	}
	frozen := set.Frozen()
	view := &frozen
	if err := balances.Insert(view, "m", 1); !errors.Is(err, engine.ErrAlone) {
		t.Error("an insert of a view:", err)
	}
}

// Rows that are in memory are not read again, and a unit that shares a transaction reads no others.
func TestMissingRows(t *testing.T) {
	set := rows.NewAhead()
	balances.Load(set, "a", 1)
	balances.Ask(set, "b")
	if missing, err := balances.Missing(set, []string{"a", "b"}); len(missing) != 0 || err != nil {
		t.Error("what was read ahead:", missing, err)
	}
	if missing, err := balances.Missing(set, []string{"a", "c"}); !errors.Is(err, engine.ErrAlone) || missing != nil {
		t.Error("what was not:", missing, err)
	}
	_, _, own := open(map[string]int64{"a": 1})
	balances.Load(own, "a", 1)
	if missing, err := balances.Missing(own, []string{"a", "c"}); err != nil || !slices.Equal(missing, []string{"c"}) {
		t.Error("in a unit alone:", missing, err)
	}
}

// Rows without a statement are left to who asks for them, those of a failed unit dropped.
func TestRowsThatAreWrittenElsewhere(t *testing.T) {
	list := &rows.Inserts[string]{Order: 3}
	set := rows.NewAhead()
	for _, keep := range []bool{true, false, true} {
		if err := list.Insert(set, fmt.Sprint(keep)); err != nil {
			t.Fatal(err)
		}
		set.End(keep)
	}
	c := &table{stored: map[string]int64{}}
	if err := set.WriteTo(c); err != nil || len(c.sent) != 0 || !slices.Equal(list.Added(set), []string{"true", "true"}) {
		t.Errorf("%q are left, %q was sent, %v", list.Added(set), c.sent, err)
	}
}

// Units of one transaction on a database without read-ahead read a row once, see what those before them changed, and
// all of it is written once.
func TestUnitsOfATransactionShareWhatTheyRead(t *testing.T) {
	c, in, _ := open(map[string]int64{"a": 10})
	written := 0
	set := rows.NewShared(c, in, func(*rows.Set) { written++ })
	take := func(amount int64) error {
		set.Use(c, true)
		n, _, err := balances.Get(set, "a")
		if err = cmp.Or(err, balances.Put(set, "a", n-amount)); err == nil && n < amount {
			err = errors.New("too little")
		}
		set.End(err == nil)
		return err
	}
	for _, amount := range []int64{3, 9, 2} {
		if err := take(amount); (err == nil) != (amount < 9) {
			t.Errorf("%d: %v", amount, err)
		}
	}
	if in.Wrote || len(c.sent) != 1 || written != 0 {
		t.Errorf("before the flush it has sent %q", c.sent)
	}
	if err := set.Flush(); err != nil || c.stored["a"] != 5 || len(c.sent) != 2 || written != 1 {
		t.Errorf("%v is stored after %q, %v", c.stored, c.sent, err)
	}
}

// A unit that runs a statement of its own has what those before it changed written, but has written nothing by that
// itself: it may still fail without harm.
func TestAFlushOfOthersIsNoWriteOfTheUnit(t *testing.T) {
	c, in, _ := open(map[string]int64{"a": 1})
	set := rows.NewShared(c, in, func(*rows.Set) {})
	_ = cmp.Or(balances.Put(set, "a", 2), notes.Insert(set, balance{"n", 1}), totals.Add(set, "t", 1))
	set.End(true)
	if err := set.Forget(); err != nil || in.Wrote || c.stored["a"] != 2 || c.stored["n"] != 1 || c.stored["t"] != 1 {
		t.Errorf("%v is stored, written by the unit: %v, %v", c.stored, in.Wrote, err)
	}
	c.stored["a"] = 7 // by the statement
	if n, _, err := balances.Get(set, "a"); n != 7 || err != nil {
		t.Errorf("it reads %d, %v", n, err)
	}
	_ = cmp.Or(balances.Put(set, "a", 8), notes.Insert(set, balance{"m", 1}), totals.Add(set, "t", 1))
	if err := set.Flush(); err != nil || !in.Wrote || c.stored["a"] != 8 || c.stored["m"] != 1 {
		t.Errorf("%v is stored, written by the unit: %v, %v", c.stored, in.Wrote, err)
	}
	set.End(true)
	sent := len(c.sent)
	if err := set.Flush(); err != nil || len(c.sent) != sent {
		t.Errorf("written again: %q, %v", c.sent[sent:], err)
	}
}

// Rows are inserted some at a time, and each once.
func TestSomeRowsAreInsertedAtATime(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 16, 19} {
		list := make([]balance, n)
		for i := range list {
			list[i] = balance{fmt.Sprint("n", i), int64(i)}
		}
		w := &counter{}
		if err := insertNotes.Write(w, list); err != nil || w.statements != n/8+n%8 || w.args != 2*n {
			t.Errorf("%d rows take %d statements with %d arguments, %v", n, w.statements, w.args, err)
		}
		w = &counter{}
		if err := putBalances.Write(w, list); err != nil || w.statements != n/8+n%8 {
			t.Errorf("%d rows that may be there take %d statements, %v", n, w.statements, err)
		}
	}
}

// counter counts statements, and compares the arguments of each with its text.
type counter struct{ statements, args int }

func (w *counter) Arrays() bool { return false }

func (w *counter) Queue(_, statement string, args []any) error {
	w.statements++
	w.args += len(args)
	if last := fmt.Sprintf("?%d)", len(args)); !strings.Contains(statement, last) ||
		strings.Contains(statement, fmt.Sprintf("?%d", len(args)+1)) {
		return fmt.Errorf("%d arguments for %s", len(args), statement)
	}
	return nil
}

// The units of the next transaction find the rows of a table that keeps them as they were written, and no others.
func TestRowsOfTheTransactionBefore(t *testing.T) {
	kept := *balances
	kept.Order, kept.Keep = 4, true
	c, in, _ := open(map[string]int64{"a": 1, "b": 2})
	set := rows.NewShared(c, in, func(*rows.Set) {})
	list := &rows.Inserts[string]{Order: 3}
	if err := cmp.Or(kept.Put(set, "a", 5), balances.Put(set, "b", 6), list.Insert(set, "n")); err != nil {
		t.Fatal(err)
	}
	set.End(true)
	next := func() {
		t.Helper()
		if err := set.Flush(); err != nil {
			t.Fatal(err)
		}
		before := set
		set = set.Next(c, &engine.Transaction{Conn: c}, func(*rows.Set) {})
		if _, ok := kept.Peek(before, "a"); ok {
			t.Error("a unit of the transaction before has rows of this one")
		}
		c.sent = nil
	}
	next()
	if n, ok := kept.Peek(set, "a"); n != 5 || !ok {
		t.Errorf("a is %d, %v", n, ok)
	}
	if _, ok := balances.Peek(set, "b"); ok || len(list.Added(set)) > 0 {
		t.Error("a row is kept that is not to be, or inserted again")
	}
	_ = kept.Put(set, "a", 7)
	set.End(false) // a unit that fails
	if n, ok, err := kept.Get(set, "a"); n != 5 || !ok || err != nil || len(c.sent) > 0 {
		t.Errorf("a is %d, %v, read by %q", n, err, c.sent)
	}
	_ = kept.Put(set, "a", 8)
	set.End(true)
	next()
	if n, ok := kept.Peek(set, "a"); n != 8 || !ok || c.stored["a"] != 8 {
		t.Errorf("a is %d, stored as %d", n, c.stored["a"])
	}
	_ = kept.Put(set, "d", 4)
	set.End(true)
	if err := set.Flush(); err != nil || len(c.sent) != 1 {
		t.Errorf("for one changed row was sent %q, %v", c.sent, err)
	}
	kept.Ask(set, "c") // and found
	kept.Load(set, "c", 3)
	next()
	if n, ok := kept.Peek(set, "c"); n != 3 || !ok {
		t.Errorf("c is %d, %v", n, ok)
	}
	// What is known to be absent is not kept, since others may insert it without reading it.
	if _, ok, err := kept.Get(set, "none"); ok || err != nil {
		t.Fatal(ok, err)
	}
	next()
	if _, ok := kept.Peek(set, "a"); ok {
		t.Error("rows are kept beside one that is absent")
	}
	for n := range rows.MaxKept + 1 {
		kept.Load(set, fmt.Sprint(n), 1)
	}
	next()
	if _, ok := kept.Peek(set, "1"); ok {
		t.Error("more rows are kept than may be")
	}
}

// A row in memory is amended for units that follow, unless the unit fails, and nothing of that is written.
func TestARowIsAmended(t *testing.T) {
	c, in, _ := open(map[string]int64{"a": 1})
	set := rows.NewShared(c, in, func(*rows.Set) {})
	double := func(n int64) int64 { return 2 * n }
	balances.Amend(set, "a", double) // it is not in memory
	for _, keep := range []bool{true, false, true} {
		if _, _, err := balances.Get(set, "a"); err != nil {
			t.Fatal(err)
		}
		balances.Amend(set, "a", double)
		set.End(keep)
	}
	balances.Ask(set, "none")
	balances.Amend(set, "none", double)
	n, _, err := balances.Get(set, "a")
	_, ok, _ := balances.Get(set, "none")
	if err := cmp.Or(err, set.Flush()); n != 4 || ok || err != nil || len(c.sent) != 1 {
		t.Errorf("a is %d, none is there: %v, %q was sent, %v", n, ok, c.sent, err)
	}
	_ = balances.Put(set, "a", 5)
	balances.Amend(set, "a", double)
	set.End(true)
	if err := set.Flush(); err != nil || c.stored["a"] != 10 {
		t.Errorf("a change that was amended is stored as %d, %v", c.stored["a"], err)
	}
}
