package storage

import (
	"reflect"
	"sync"

	"gorm.io/gorm/schema"
)

// The functions below let a struct be the one definition of a row that hand-written statements read
// and write: its fields are the columns, in their order, with the names that GORM gives them. The
// fields of an embedded struct come in its place.

// columnNames returns the names of the columns of a row.
func columnNames(row any) (names []string) {
	t := reflect.TypeOf(row).Elem()
	for _, path := range columnPaths(t) {
		names = append(names, schema.NamingStrategy{}.ColumnName("", t.FieldByIndex(path).Name))
	}
	return names
}

// columnValues returns the values of the columns of a row.
func columnValues(row any) []any {
	v := reflect.ValueOf(row).Elem()
	paths := columnPaths(v.Type())
	values := make([]any, len(paths))
	for i, path := range paths {
		values[i] = columnValue(v.FieldByIndex(path))
	}
	return values
}

// columnValue returns a column's value in the type that drivers take. Empty strings and small numbers
// are boxed without an allocation so, which reflect.Value.Interface is not able to.
func columnValue(v reflect.Value) any {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Int, reflect.Int64:
		return v.Int()
	case reflect.Bool:
		return v.Bool()
	default:
		return v.Interface()
	}
}

// scanTargets returns what a query scans the columns of a row into, and then more.
func scanTargets(row any, more ...any) []any {
	v := reflect.ValueOf(row).Elem()
	paths := columnPaths(v.Type())
	targets := make([]any, len(paths), len(paths)+len(more))
	for i, path := range paths {
		targets[i] = v.FieldByIndex(path).Addr().Interface()
	}
	return append(targets, more...)
}

// pathsOfRows caches columnPaths: reflect.Type.Field allocates, and these rows are read by every
// call.
var pathsOfRows sync.Map // reflect.Type to [][]int

// columnPaths returns the index path of each column of a row of type t.
func columnPaths(t reflect.Type) [][]int {
	if paths, ok := pathsOfRows.Load(t); ok {
		return paths.([][]int)
	}
	var paths [][]int
	for _, field := range reflect.VisibleFields(t) {
		if !field.Anonymous {
			paths = append(paths, field.Index)
		}
	}
	pathsOfRows.Store(t, paths)
	return paths
}
