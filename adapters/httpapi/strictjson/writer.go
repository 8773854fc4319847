package strictjson

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Appender is implemented by scalars that append themselves as JSON. It saves the
// allocation and the validation of each call of MarshalJSON: a session has thirty
// amounts and times.
type Appender interface{ AppendJSON(b []byte) []byte }

var appenderType = reflect.TypeFor[Appender]()

// encoder appends the JSON of a value of one type.
type encoder func(b []byte, v reflect.Value) []byte

var encoders sync.Map // from reflect.Type to encoder

// Append appends v as encoding/json would write it. It panics if
// encoding/json would refuse v. A large value takes less as a pointer to it.
func Append(b []byte, v any) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		// A value in an interface is not addressable, and copying its fields out would
		// allocate; a pointer to a copy is.
		p = reflect.New(reflect.TypeOf(v))
		p.Elem().Set(reflect.ValueOf(v))
	}
	return encoderOf(p.Elem().Type())(b, p.Elem())
}

func encoderOf(t reflect.Type) encoder {
	if e, ok := encoders.Load(t); ok {
		return e.(encoder)
	}
	e := newEncoder(t)
	encoders.Store(t, e)
	return e
}

func newEncoder(t reflect.Type) encoder {
	if t.Kind() != reflect.Pointer && t.Implements(appenderType) {
		// Through a pointer into the answer, so that no interface is allocated.
		return func(b []byte, v reflect.Value) []byte { return v.Addr().Interface().(Appender).AppendJSON(b) }
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendBool(b, v.Bool()) }
	case reflect.Int, reflect.Int64:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendInt(b, v.Int(), 10) }
	case reflect.String:
		return func(b []byte, v reflect.Value) []byte { return AppendString(b, v.String()) }
	case reflect.Pointer:
		return pointerEncoder(encoderOf(t.Elem()))
	case reflect.Slice:
		return sliceEncoder(encoderOf(t.Elem()))
	case reflect.Struct:
		return structEncoder(structFields(t, nil))
	}
	return anyEncoder
}

func pointerEncoder(elem encoder) encoder {
	return func(b []byte, v reflect.Value) []byte {
		if v.IsNil() {
			return append(b, "null"...)
		}
		return elem(b, v.Elem())
	}
}

func sliceEncoder(elem encoder) encoder {
	return func(b []byte, v reflect.Value) []byte {
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = elem(b, v.Index(i))
		}
		return append(b, ']')
	}
}

// anyEncoder leaves the types that only cold answers have to encoding/json.
func anyEncoder(b []byte, v reflect.Value) []byte {
	if counts, ok := v.Interface().(map[string]int64); ok {
		return appendCounts(b, counts)
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		panic(err) // a programming error
	}
	return append(b, text...)
}

// appendCounts appends a map with its keys in order.
func appendCounts(b []byte, counts map[string]int64) []byte {
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(counts)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendString(b, key), ':')
		b = strconv.AppendInt(b, counts[key], 10)
	}
	return append(b, '}')
}

// field is one member of a struct's object.
type field struct {
	index     []int
	name      string // with quotes and colon
	omitEmpty bool
	encode    encoder
}

// structFields returns the members in the order of encoding/json: as declared, with
// those of embedded structs in their place.
func structFields(t reflect.Type, at []int) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(at), i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			out = append(out, structFields(f.Type, index)...)
		case f.IsExported():
			out = append(out, field{index, string(AppendString(nil, name)) + ":", strings.Contains(options, "omitempty"),
				encoderOf(f.Type)})
		}
	}
	return out
}

func structEncoder(fields []field) encoder {
	return func(b []byte, v reflect.Value) []byte {
		b = append(b, '{')
		first := true
		for i := range fields {
			f := &fields[i]
			member := v.FieldByIndex(f.index)
			if f.omitEmpty && member.IsZero() {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(b, f.name...)
			b = f.encode(b, member)
		}
		return append(b, '}')
	}
}

// plainText marks the bytes that a JSON string holds unescaped. Those of other
// scripts are left out, because encoding/json escapes two of them.
var plainText = func() (is [256]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		is[c] = !strings.ContainsRune(`"\<>&`, rune(c))
	}
	return is
}()

// AppendString appends a JSON string. Plain text, which nearly all strings are,
// is copied after one pass.
func AppendString(b []byte, s string) []byte {
	for i := range len(s) {
		if !plainText[s[i]] {
			quoted, err := json.Marshal(s)
			if err != nil { // a string always marshals
				return append(b, `""`...)
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
