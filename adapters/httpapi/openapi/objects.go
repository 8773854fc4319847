package openapi

import (
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// leastShared is the number of properties from which an object is documented as another one and what it has more.
const leastShared = 3

// finishObjects shortens the schemas of answers. Only a request refuses what it does not have, so only its schemas are
// closed; and what has all properties of another is that and the rest.
func finishObjects(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas.Map()
	sent := map[string]bool{}
	for o := range operationsOf(doc) {
		if o.RequestBody != nil {
			for _, m := range o.RequestBody.Content {
				reach(schemas, m.Schema, sent)
			}
		}
	}
	answered := map[string]*huma.Schema{}
	for name, s := range schemas {
		if closed, ok := s.AdditionalProperties.(bool); ok && !closed && !sent[name] {
			s.AdditionalProperties, answered[name] = nil, s
		}
	}
	texts := map[string]map[string]string{} // of the properties, by schema and name
	for name, s := range answered {
		texts[name] = map[string]string{}
		for p, property := range s.Properties {
			texts[name][p] = string(textOf(property))
		}
	}
	for name, s := range answered {
		if base := baseOf(name, answered, texts); base != "" {
			schemas[name] = without(s, base, answered[base])
		}
	}
}

// allowNull lets the objects that an answer always has be null where their fields are pointers, which tags cannot.
func allowNull(schemas huma.Registry) {
	for f, s := range fieldsOf(schemas) {
		p := s.Properties[f.Tag.Get("json")] // of a field that may be left out the tag is not the name
		if p != nil && p.Ref != "" && f.Type.Kind() == reflect.Pointer {
			*p = huma.Schema{Description: p.Description, AnyOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
		}
	}
}

// fieldsOf iterates over the fields of the structs that objects are made of, with the schema of the object.
func fieldsOf(schemas huma.Registry) iter.Seq2[reflect.StructField, *huma.Schema] {
	return func(yield func(reflect.StructField, *huma.Schema) bool) {
		for name, s := range schemas.Map() {
			if t := schemas.TypeFromRef(schemaRef + name); t != nil && t.Kind() == reflect.Struct {
				for _, f := range reflect.VisibleFields(t) {
					if !yield(f, s) {
						return
					}
				}
			}
		}
	}
}

// describeOnce gives a schema the description that most properties of it have, and these none of their own.
func describeOnce(schemas map[string]*huma.Schema) {
	uses := map[string]map[string][]*huma.Schema{} // by schema and description
	for _, s := range schemas {
		for _, part := range append(s.AllOf, s) {
			for _, p := range part.Properties {
				if p.Ref == "" || p.Description == "" {
					continue
				}
				name := p.Ref[len(schemaRef):]
				if uses[name] == nil {
					uses[name] = map[string][]*huma.Schema{}
				}
				uses[name][p.Description] = append(uses[name][p.Description], p)
			}
		}
	}
	for name, texts := range uses {
		most := ""
		for text, sites := range texts {
			// Of two that are as frequent the text decides, so that the document is always the same.
			if n := len(texts[most]); len(sites) > n || len(sites) == n && text < most {
				most = text
			}
		}
		if s := schemas[name]; s != nil && s.Description == "" && len(texts[most]) > 1 {
			s.Description = most
			for _, p := range texts[most] {
				p.Description = ""
			}
		}
	}
}

// reach adds the names of the schemas that a schema has, itself included.
func reach(schemas map[string]*huma.Schema, s *huma.Schema, names map[string]bool) {
	if s == nil {
		return
	}
	if s.Ref != "" {
		name := s.Ref[len(schemaRef):]
		if !names[name] {
			names[name] = true
			reach(schemas, schemas[name], names)
		}
		return
	}
	reach(schemas, s.Items, names)
	for _, p := range s.Properties {
		reach(schemas, p, names)
	}
	if others, ok := s.AdditionalProperties.(*huma.Schema); ok {
		reach(schemas, others, names)
	}
	for _, one := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		reach(schemas, one, names)
	}
}

// baseOf returns the name of the largest object whose properties another has all, as they are; empty: none.
func baseOf(name string, objects map[string]*huma.Schema, texts map[string]map[string]string) (base string) {
	has := func(candidate string) bool {
		for p, text := range texts[candidate] {
			if texts[name][p] != text ||
				slices.Contains(objects[candidate].Required, p) != slices.Contains(objects[name].Required, p) {
				return false
			}
		}
		return true
	}
	for _, candidate := range slices.Sorted(maps.Keys(objects)) {
		n := len(texts[candidate])
		if n >= max(leastShared, len(texts[base])+1) && n < len(texts[name]) && has(candidate) {
			base = candidate
		}
	}
	return base
}

// without returns a schema as a reference to its base, and what it has more.
func without(s *huma.Schema, base string, of *huma.Schema) *huma.Schema {
	rest := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}}
	for name, p := range s.Properties {
		if of.Properties[name] == nil {
			rest.Properties[name] = p
		}
	}
	for _, name := range s.Required {
		if of.Properties[name] == nil {
			rest.Required = append(rest.Required, name)
		}
	}
	return &huma.Schema{Description: s.Description, AllOf: []*huma.Schema{{Ref: schemaRef + base}, rest}}
}
