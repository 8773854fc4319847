package storage

import (
	"reflect"

	"gorm.io/gorm/schema"
)

// The functions below let a struct be the one definition of a row that hand-written statements read
// and write: its fields are the columns, in their order, with the names that GORM gives them. The
// fields of an embedded struct come in its place.

// columnNames returns the names of the columns of a row.
func columnNames(row any) (names []string) {
	eachField(reflect.ValueOf(row).Elem(), func(field reflect.StructField, _ reflect.Value) {
		names = append(names, schema.NamingStrategy{}.ColumnName("", field.Name))
	})
	return names
}

// columnValues returns the values of the columns of a row.
func columnValues(row any) []any {
	values := make([]any, 0, 40)
	eachField(reflect.ValueOf(row).Elem(), func(_ reflect.StructField, v reflect.Value) {
		values = append(values, v.Interface())
	})
	return values
}

// scanTargets returns what a query scans the columns of a row into, and then more.
func scanTargets(row any, more ...any) []any {
	targets := make([]any, 0, 40)
	eachField(reflect.ValueOf(row).Elem(), func(_ reflect.StructField, v reflect.Value) {
		targets = append(targets, v.Addr().Interface())
	})
	return append(targets, more...)
}

func eachField(v reflect.Value, fn func(reflect.StructField, reflect.Value)) {
	for i := range v.NumField() {
		if field := v.Type().Field(i); field.Anonymous {
			eachField(v.Field(i), fn)
		} else {
			fn(field, v.Field(i))
		}
	}
}
