package rows

import (
	"reflect"
	"strconv"
	"strings"

	"agentproxy/adapters/storage/column"
)

// Writer sends statements whose results are not needed.
type Writer interface {
	// Queue sends a statement at once or with the next one.
	Queue(what, statement string, args []any) error
	// Arrays reports whether a parameter may be an array, so that one statement writes many rows.
	Arrays() bool
}

// Statement writes rows of a struct F: one row as parameters, and many, where the database has arrays, as an
// array a column, which the function unnest of PostgreSQL makes rows of. The text is the same for any number of
// rows, so it stays prepared. Where it has none, some rows are inserted at a time.
type Statement[F any] struct {
	what            string
	one, some, many string // some is empty for a statement that writes one row
	types           []reflect.Type
}

// someRows is how many rows some of a Statement has.
const someRows = 8

// Columns are the columns of a struct, and those of its rows in a statement.
type Columns struct {
	names []string
	types []reflect.Type
}

// ColumnsOf returns the columns of F, and of more numbers behind them.
func ColumnsOf[F any](more ...string) Columns {
	t := reflect.TypeFor[F]()
	c := Columns{names: append(column.Names(new(F)), more...)}
	for _, path := range column.Paths(t) {
		c.types = append(c.types, arrayOf(t.FieldByIndex(path).Type))
	}
	for range more {
		c.types = append(c.types, reflect.TypeFor[[]int64]())
	}
	return c
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
func (c Columns) List(prefix string) string { return prefix + strings.Join(c.names, ", "+prefix) }

// From returns the rows as a table u.
func (c Columns) From() string {
	arrays := make([]string, len(c.types))
	for i, t := range c.types {
		arrays[i] = "?" + strconv.Itoa(i+1) + "::" + arrayNames[t]
	}
	return "unnest(" + strings.Join(arrays, ", ") + ") AS u(" + strings.Join(c.names, ", ") + ")"
}

// places returns the parameters of columns.
func (c Columns) places(first, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = "?" + strconv.Itoa(first+i)
	}
	return strings.Join(list, ", ")
}

// NewStatement returns a statement for one row and one for many, which reads them from From.
func NewStatement[F any](what string, c Columns, one, many string) Statement[F] {
	return Statement[F]{what: what, one: one, many: many, types: c.types}
}

// Insert returns a statement that inserts rows, with what follows, such as ON CONFLICT.
func Insert[F any](what, table, then string) Statement[F] {
	c := ColumnsOf[F]()
	into := "INTO " + table + " (" + c.List("") + ") "
	s := NewStatement[F](what, c, "INSERT "+into+"VALUES ("+c.places(1, len(c.names))+")"+then,
		"INSERT "+into+"SELECT "+c.List("u.")+" FROM "+c.From()+then)
	values := make([]string, someRows)
	for i := range values {
		values[i] = "(" + c.places(1+i*len(c.names), len(c.names)) + ")"
	}
	// FAIL spares SQLite copies of the pages: a transaction whose rows cannot be written is rolled back.
	s.some = "INSERT OR FAIL " + into + "VALUES " + strings.Join(values, ", ") + then
	return s
}

// Upsert returns a statement that inserts rows, or replaces those with the same first columns, which are the key.
func Upsert[F any](what, table string, key int) Statement[F] {
	return Insert[F](what, table, conflict[F](key, func(name string) string { return "excluded." + name }))
}

// Add returns a statement that inserts rows, or adds to those with the same first columns, which are the key.
func Add[F any](what, table string, key int) Statement[F] {
	return Insert[F](what, table, conflict[F](key, func(name string) string {
		return table + "." + name + " + excluded." + name
	}))
}

func conflict[F any](key int, value func(name string) string) string {
	names := column.Names(new(F))
	set := make([]string, 0, len(names))
	for _, name := range names[key:] {
		set = append(set, name+" = "+value(name))
	}
	return " ON CONFLICT (" + strings.Join(names[:key], ", ") + ") DO UPDATE SET " + strings.Join(set, ", ")
}

// Update returns a statement that updates the rows with the same first columns, which are the key.
func Update[F any](what, table string, key int) Statement[F] {
	c := ColumnsOf[F]()
	rest := Columns{names: c.names[key:]}
	set := func(values string) string {
		if len(rest.names) == 1 {
			return rest.names[0] + " = " + values
		}
		return "(" + rest.List("") + ") = (" + values + ")"
	}
	var one, many []string
	for i, name := range c.names[:key] {
		one = append(one, name+" = ?"+strconv.Itoa(i+1))
		many = append(many, "t."+name+" = u."+name)
	}
	return NewStatement[F](what, c,
		"UPDATE "+table+" SET "+set(c.places(key+1, len(rest.names)))+" WHERE "+strings.Join(one, " AND "),
		"UPDATE "+table+" t SET "+set(rest.List("u."))+" FROM "+c.From()+" WHERE "+strings.Join(many, " AND "))
}

// Write sends rows.
func (s *Statement[F]) Write(w Writer, rows []F) error {
	return s.Values(w, len(rows), func(i int) []any { return column.Values(&rows[i]) })
}

// Values sends n rows, of which values returns one.
func (s *Statement[F]) Values(w Writer, n int, values func(i int) []any) error {
	if n > 1 && w.Arrays() {
		return w.Queue(s.what, s.many, s.arrays(n, values))
	}
	for i := 0; i < n; i++ {
		text, args := s.one, values(i)
		if s.some != "" && n-i >= someRows {
			for range someRows - 1 {
				i++
				args = append(args, values(i)...)
			}
			text = s.some
		}
		if err := w.Queue(s.what, text, args); err != nil {
			return err
		}
	}
	return nil
}

// arrays returns the arrays of n rows.
func (s *Statement[F]) arrays(n int, values func(i int) []any) []any {
	arrays := make([]reflect.Value, len(s.types))
	for c, t := range s.types {
		arrays[c] = reflect.MakeSlice(t, n, n)
	}
	for i := range n {
		for c, v := range values(i) {
			if flagged, ok := v.(bool); ok {
				v = column.Flag(flagged)
			}
			arrays[c].Index(i).Set(reflect.ValueOf(v).Convert(s.types[c].Elem()))
		}
	}
	args := make([]any, len(arrays))
	for c, array := range arrays {
		args[c] = array.Interface()
	}
	return args
}

// Map returns a row of F for each element of a list.
func Map[T, F any](list []T, to func(T) F) []F {
	rows := make([]F, len(list))
	for i, x := range list {
		rows[i] = to(x)
	}
	return rows
}
