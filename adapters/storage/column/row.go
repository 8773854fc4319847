package column

import (
	"reflect"
	"sync"

	"gorm.io/gorm/schema"
)

// Names returns the names of the columns of a row, given as a pointer to its struct.
func Names(row any) (names []string) {
	t := reflect.TypeOf(row).Elem()
	for _, path := range Paths(t) {
		names = append(names, schema.NamingStrategy{}.ColumnName("", t.FieldByIndex(path).Name))
	}
	return names
}

// Values returns the values of the columns of a row, in the types that drivers take.
func Values(row any) []any {
	v := reflect.ValueOf(row).Elem()
	paths := Paths(v.Type())
	values := make([]any, len(paths))
	for i, path := range paths {
		values[i] = value(v.FieldByIndex(path))
	}
	return values
}

// value returns a column's value in the type that drivers take. Empty strings and small numbers
// are boxed without an allocation so, which reflect.Value.Interface is not able to.
func value(v reflect.Value) any {
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

// Targets returns what a query scans the columns of a row into, and then more.
func Targets(row any, more ...any) []any {
	v := reflect.ValueOf(row).Elem()
	paths := Paths(v.Type())
	targets := make([]any, len(paths), len(paths)+len(more))
	for i, path := range paths {
		targets[i] = v.FieldByIndex(path).Addr().Interface()
	}
	return append(targets, more...)
}

// pathsOfRows caches Paths: reflect.Type.Field allocates, and these rows are read by every
// call.
var pathsOfRows sync.Map // reflect.Type to [][]int

// Paths returns the index path of each column of a row of type t.
func Paths(t reflect.Type) [][]int {
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
