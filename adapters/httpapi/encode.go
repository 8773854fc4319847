package httpapi

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// encoder appends the JSON of one type. It writes what encoding/json would,
// without calls of MarshalJSON that each allocate and are checked again: a
// record of a session has thirty amounts and times.
type encoder func(b []byte, v reflect.Value) []byte

var encoders sync.Map // of reflect.Type: its encoder

// appendValue writes the data of an answer.
func appendValue(buf *buffer, v any) error {
	if v == nil {
		buf.b = append(buf.b, "null"...)
		return nil
	}
	// A value behind an interface cannot be addressed, and copying its fields
	// out would allocate; a pointer to a copy can.
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	buf.b = encoderOf(p.Elem().Type())(buf.b, p.Elem())
	return nil
}

// appendsJSON is implemented by the scalars of wire.go.
type appendsJSON interface{ appendJSON(b []byte) []byte }

var appendsJSONType = reflect.TypeFor[appendsJSON]()

func encoderOf(t reflect.Type) encoder {
	if e, ok := encoders.Load(t); ok {
		return e.(encoder)
	}
	e := newEncoder(t)
	encoders.Store(t, e)
	return e
}

func newEncoder(t reflect.Type) encoder {
	if t.Kind() != reflect.Pointer && t.Implements(appendsJSONType) {
		// Through a pointer into the answer, so that nothing is boxed.
		return func(b []byte, v reflect.Value) []byte { return v.Addr().Interface().(appendsJSON).appendJSON(b) }
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendBool(b, v.Bool()) }
	case reflect.Int, reflect.Int64:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendInt(b, v.Int(), 10) }
	case reflect.String:
		return func(b []byte, v reflect.Value) []byte { return appendString(b, v.String()) }
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

// anyEncoder leaves what no hot answer has to encoding/json.
func anyEncoder(b []byte, v reflect.Value) []byte {
	if counts, ok := v.Interface().(map[string]int64); ok {
		return appendCounts(b, counts)
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		panic(err) // a reply type that cannot be written is a fault of the program
	}
	return append(b, text...)
}

// appendCounts writes a map with its keys in order.
func appendCounts(b []byte, counts map[string]int64) []byte {
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(counts)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, key), ':')
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

// structFields lists the members in the order of encoding/json: as declared,
// with those of embedded structs in their place.
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
			out = append(out, field{index, string(appendString(nil, name)) + ":", strings.Contains(options, "omitempty"), encoderOf(f.Type)})
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
