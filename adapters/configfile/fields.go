package configfile

import (
	"reflect"
	"strconv"
)

// setting is a field of Config.
type setting struct {
	key      string // in the file; - if the file cannot set it
	variable string
	field    reflect.Value
	of       reflect.StructField
}

// settings returns the fields of a Config, those of embedded structs included.
func settings(of reflect.Value) (list []setting) {
	for i := range of.NumField() {
		f := of.Type().Field(i)
		if f.Anonymous {
			list = append(list, settings(of.Field(i))...)
			continue
		}
		list = append(list, setting{f.Tag.Get("yaml"), f.Tag.Get("env"), of.Field(i), f})
	}
	return list
}

// keys returns the keys of the settings in the file.
func (c *Config) keys() (list []key) {
	for _, s := range settings(reflect.ValueOf(c).Elem()) {
		if s.key != "-" {
			list = append(list, key{name: s.key})
		}
	}
	return list
}

// read sets what the file sets, and returns the place of each by the name of its
// variable.
func (c *Config) read(f fields) map[string]value {
	places := map[string]value{}
	for _, s := range settings(reflect.ValueOf(c).Elem()) {
		if v := f.get(s.key); s.key != "-" && v.given() {
			places[s.variable] = v
			decode(s.field, v)
		}
	}
	return places
}

// decode sets a field to a value; the field keeps its value after a fault.
func decode(field reflect.Value, v value) {
	kind := field.Type()
	if kind.Kind() == reflect.Pointer {
		fresh := reflect.New(kind.Elem())
		if decode(fresh.Elem(), v); !v.faulty() {
			field.Set(fresh)
		}
		return
	}
	switch kind.Kind() {
	case reflect.Slice:
		var list []string
		for _, item := range v.items() {
			if text, ok := item.scalar(); ok {
				list = append(list, text)
			}
		}
		field.Set(reflect.ValueOf(list))
	case reflect.Bool:
		field.SetBool(v.boolean(false))
	case reflect.Int:
		text, ok := v.scalar()
		if !ok {
			return
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			v.fault("must be a whole number")
			return
		}
		field.SetInt(int64(n))
	default:
		if text, ok := v.scalar(); ok {
			field.SetString(text)
		}
	}
}
