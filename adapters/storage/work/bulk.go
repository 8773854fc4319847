package work

import (
	"reflect"
	"strconv"
	"strings"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
)

// Bulk writes rows of a struct by one statement of PostgreSQL: each column is an array, and unnest
// makes rows of them. The statement is the same for any number of rows, so it stays prepared.
type Bulk struct {
	columns []string
	arrays  string // "?1::text[], ?2::bigint[], ..."
	types   []reflect.Type
}

// NewBulk returns the columns of row, and of more numbers behind them.
func NewBulk(row any, more ...string) Bulk {
	t := reflect.TypeOf(row).Elem()
	m := Bulk{columns: append(column.Names(row), more...)}
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

// List returns the columns, each behind a prefix.
func (m Bulk) List(prefix string) string { return prefix + strings.Join(m.columns, ", "+prefix) }

// From returns the rows as a table u.
func (m Bulk) From() string {
	return "unnest(" + m.arrays + ") AS u(" + strings.Join(m.columns, ", ") + ")"
}

// alone returns a row as a table u, whose parameters are its columns: unnest makes a table of each
// column first, which costs more than the row itself does.
func (m Bulk) alone() string {
	return "(SELECT " + strings.ReplaceAll(m.arrays, "[]", "") + ") AS u(" + strings.Join(m.columns, ", ") + ")"
}

// BulkStatement writes rows by a statement, and one row by another.
type BulkStatement struct {
	Bulk
	many, one string
}

// Statement returns a statement that reads its rows from m.From.
func (m Bulk) Statement(s string) BulkStatement {
	return BulkStatement{m, s, strings.Replace(s, m.From(), m.alone(), 1)}
}

// Queue adds the statement with n rows, of which values returns one.
func (s BulkStatement) Queue(pipe engine.Pipeline, what string, n int, values func(i int) []any) {
	switch n {
	case 0:
	case 1:
		pipe.Queue(what, s.one, values(0), nil)
	default:
		pipe.Queue(what, s.many, s.arguments(n, values), nil)
	}
}

// Insert returns a statement that inserts the rows into a table.
func (m Bulk) Insert(table string) string {
	return "INSERT INTO " + table + " (" + m.List("") + ") SELECT " + m.List("u.") + " FROM " + m.From()
}

// arguments returns the arrays of n rows, of which values returns one.
func (m Bulk) arguments(n int, values func(i int) []any) []any {
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
