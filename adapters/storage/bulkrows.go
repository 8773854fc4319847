package storage

import (
	"reflect"
	"strconv"
	"strings"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
)

// bulkRows writes rows of a struct by one statement of PostgreSQL: each column is an array, and unnest
// makes rows of them. The statement is the same for any number of rows, so it stays prepared.
type bulkRows struct {
	columns []string
	arrays  string // "?1::text[], ?2::bigint[], ..."
	types   []reflect.Type
}

// newBulkRows returns the columns of row, and of more numbers behind them.
func newBulkRows(row any, more ...string) bulkRows {
	t := reflect.TypeOf(row).Elem()
	m := bulkRows{columns: append(column.Names(row), more...)}
	for _, path := range column.Paths(t) {
		m.types = append(m.types, arrayOf(t.FieldByIndex(path).Type))
	}
	for range more {
		m.types = append(m.types, reflect.TypeFor[[]int64]())
	}
	var b strings.Builder
	for i, array := range m.types {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("?" + strconv.Itoa(i+1) + "::" + arrayNames[array])
	}
	m.arrays = b.String()
	return m
}

var arrayNames = map[reflect.Type]string{
	reflect.TypeFor[[]string](): "text[]", reflect.TypeFor[[]int64](): "bigint[]", reflect.TypeFor[[][]byte](): "bytea[]",
}

// arrayOf returns the type of the array of a column: flags are numbers.
func arrayOf(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.String:
		return reflect.TypeFor[[]string]()
	case reflect.Int, reflect.Int64, reflect.Bool:
		return reflect.TypeFor[[]int64]()
	case reflect.Slice:
		return reflect.TypeFor[[][]byte]()
	}
	panic("no array of " + t.String())
}

// list returns the columns, each behind a prefix.
func (m bulkRows) list(prefix string) string { return prefix + strings.Join(m.columns, ", "+prefix) }

// from returns the rows as a table u.
func (m bulkRows) from() string {
	return "unnest(" + m.arrays + ") AS u(" + strings.Join(m.columns, ", ") + ")"
}

// alone returns a row as a table u, whose parameters are its columns: unnest makes a table of each
// column first, which costs more than the row itself does.
func (m bulkRows) alone() string {
	return "(SELECT " + strings.ReplaceAll(m.arrays, "[]", "") + ") AS u(" + strings.Join(m.columns, ", ") + ")"
}

// manyStatement writes rows by a statement, and one row by another.
type manyStatement struct {
	bulkRows
	many, one string
}

// statement returns a statement that reads its rows from m.from.
func (m bulkRows) statement(s string) manyStatement {
	return manyStatement{m, s, strings.Replace(s, m.from(), m.alone(), 1)}
}

// ask queues the statement with n rows, of which values returns one.
func (s manyStatement) ask(pipe engine.Pipeline, what string, n int, values func(i int) []any) {
	switch n {
	case 0:
	case 1:
		pipe.Ask(what, s.one, values(0), nil)
	default:
		pipe.Ask(what, s.many, s.arguments(n, values), nil)
	}
}

// insert returns a statement that inserts the rows into a table.
func (m bulkRows) insert(table string) string {
	return "INSERT INTO " + table + " (" + m.list("") + ") SELECT " + m.list("u.") + " FROM " + m.from()
}

// arguments returns the arrays of n rows, of which values returns one.
func (m bulkRows) arguments(n int, values func(i int) []any) []any {
	arrays := make([]reflect.Value, len(m.types))
	for c, t := range m.types {
		arrays[c] = reflect.MakeSlice(t, n, n)
	}
	for i := range n {
		for c, v := range values(i) {
			if flagged, ok := v.(bool); ok {
				v = column.Flag(flagged)
			}
			arrays[c].Index(i).Set(reflect.ValueOf(v).Convert(m.types[c].Elem()))
		}
	}
	args := make([]any, len(arrays))
	for c, array := range arrays {
		args[c] = array.Interface()
	}
	return args
}
