package configfile

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// setting is a field of Config.
type setting struct {
	key      string // in the file; empty: it is never read from there
	variable string
	field    reflect.Value
}

// settings are the fields of a Config, those of inlined ones too.
func settings(of reflect.Value) (list []setting) {
	for i := range of.NumField() {
		f := of.Type().Field(i)
		key := f.Tag.Get("yaml")
		switch {
		case key == ",inline":
			list = append(list, settings(of.Field(i))...)
		case key != "-":
			list = append(list, setting{key, f.Tag.Get("env"), of.Field(i)})
		}
	}
	return list
}

// keys are the names of the settings in the file.
func (c *Config) keys() (names []string) {
	for _, s := range settings(reflect.ValueOf(c).Elem()) {
		names = append(names, s.key)
	}
	return names
}

// take reads the settings out of the file, and tells where each stands by the
// name of its variable.
func (c *Config) take(f fields) map[string]value {
	places := map[string]value{}
	for _, s := range settings(reflect.ValueOf(c).Elem()) {
		v := f.get(s.key)
		if !v.given() {
			continue
		}
		places[s.variable] = v
		set(s.field, v)
	}
	return places
}

// set decodes a value into a field; the field stays as it is after a fault.
func set(field reflect.Value, v value) {
	kind := field.Type()
	if kind.Kind() == reflect.Pointer {
		fresh := reflect.New(kind.Elem())
		if set(fresh.Elem(), v); !v.faulty() {
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
		field.SetBool(v.truth(false))
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

// ordered puts the faults of the file in the order of its lines, and those of
// the variables behind them.
func ordered(err error) error {
	faults := FaultsOf(err)
	slices.SortStableFunc(faults, func(a, b Fault) int {
		if a.File == "" || b.File == "" {
			return cmp.Compare(b.File, a.File)
		}
		return cmp.Compare(a.Line, b.Line)
	})
	list := make([]error, len(faults))
	for i, f := range faults {
		list[i] = f
	}
	return errors.Join(list...)
}

// FaultsOf takes the error of Load apart.
func FaultsOf(err error) (list []Fault) {
	if err == nil {
		return nil
	}
	for _, e := range leaves(err) {
		f, ok := errors.AsType[Fault](e)
		if !ok {
			path, text, found := strings.Cut(e.Error(), ": ")
			if f = (Fault{Path: path, Text: text}); !found {
				f = Fault{Text: path}
			}
		}
		list = append(list, f)
	}
	return list
}
