package binding

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/domain"
	"agentproxy/domain/spelling"
)

// object is an object of a body: its fields, and where they belong.
type object struct {
	path   string // such as config. or events[].
	fields []string
	strict bool // the schema has additionalProperties false
}

// Names are those that one operation takes, and what others were meant as.
type Names struct {
	Fields  *strictjson.Names // of the body
	query   []string
	objects []*object // of the body, which is the first
}

// NamesOf returns the names of an operation with parameters and a body, as its schema in a registry has them. Without a
// body every field is unknown, and refused unless it is lenient.
func NamesOf(r huma.Registry, in []*huma.Param, body *huma.Schema, lenient bool) *Names {
	n := &Names{}
	for _, p := range in {
		if p.In == "query" {
			n.query = append(n.query, p.Name)
		}
	}
	if body != nil {
		n.Fields = n.namesIn(r, body, "")
		return n
	}
	n.objects = []*object{{strict: !lenient}}
	n.Fields = &strictjson.Names{Refuse: n.refuse(n.objects[0])}
	return n
}

// namesIn returns the names of a schema, or nil if it is no object or takes any name.
func (n *Names) namesIn(r huma.Registry, schema *huma.Schema, path string) *strictjson.Names {
	for schema != nil && schema.Ref != "" {
		schema = r.SchemaFromRef(schema.Ref)
	}
	switch {
	case schema == nil:
		return nil
	case schema.Items != nil:
		return n.namesIn(r, schema.Items, strings.TrimSuffix(path, ".")+"[].")
	case schema.Type != huma.TypeObject:
		for _, one := range slices.Concat(schema.AnyOf, schema.OneOf) {
			if names := n.namesIn(r, one, path); names != nil {
				return names
			}
		}
		return nil
	}
	open, isBool := schema.AdditionalProperties.(bool)
	if schema.AdditionalProperties != nil && !isBool {
		return nil // a map, whose keys are the caller's own
	}
	at := &object{path: path, fields: slices.Sorted(maps.Keys(schema.Properties)), strict: !open}
	n.objects = append(n.objects, at)
	names := &strictjson.Names{Refuse: n.refuse(at)}
	for _, field := range at.fields {
		names.Fields = append(names.Fields,
			strictjson.Name{Name: field, Within: n.namesIn(r, schema.Properties[field], path+field+".")})
	}
	return names
}

// refuse returns what refuses the keys of an object that are none of its fields.
func (n *Names) refuse(at *object) func(key string) string {
	return func(key string) string {
		const unknown = "is not a field of this body"
		if meant := n.meant(at, key); meant != "" {
			return unknown + "; did you mean " + meant + "?"
		}
		if at.strict {
			return unknown
		}
		return ""
	}
}

// meant returns the name that an unknown key of an object was meant as and where it belongs, or "".
func (n *Names) meant(at *object, key string) string {
	if field := spelling.Meant(key, at.fields); field != "" {
		return field
	}
	g := guessed[spelling.Fold(key)]
	here := firstOf(g.names, at.fields)
	if there := n.elsewhere(key); here != "" && there != "" {
		return here + ", or " + there // a field of the other form, or of another level of this one
	} else if here != "" || there != "" {
		return here + there
	}
	for _, name := range g.names {
		for _, other := range n.objects {
			if slices.Contains(other.fields, name) {
				return other.path + name
			}
		}
		if slices.Contains(n.query, name) {
			return parameter(name)
		}
	}
	return g.elsewhere
}

// elsewhere returns the field of another object, or the parameter, that a key was meant as, or "".
func (n *Names) elsewhere(key string) string {
	for _, other := range n.objects {
		field := spelling.Meant(key, other.fields)
		if field != "" && (len(field) > 4 || spelling.Fold(key) == spelling.Fold(field)) {
			return other.path + field
		}
	}
	if meant := spelling.Meant(key, n.query); meant != "" {
		return parameter(meant)
	}
	return ""
}

// firstOf returns the first name that is among fields, or "".
func firstOf(names, fields []string) string {
	if i := slices.IndexFunc(names, func(name string) bool { return slices.Contains(fields, name) }); i >= 0 {
		return names[i]
	}
	return ""
}

func parameter(name string) string { return "?" + name + "= in the query" }

// CheckQuery refuses every parameter of a path that has none.
func CheckQuery(raw string) error { return new(Names).CheckQuery(raw) }

// CheckQuery refuses a query that is malformed, that no database would keep, or whose parameters the
// operation does not have.
func (n *Names) CheckQuery(raw string) error {
	if raw == "" {
		return nil
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return domain.ErrInvalid.Msgf("the query is malformed; percent-encode its values")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		shown := name
		if len(name) > 64 || !strictjson.IsName(name) {
			shown = "query"
		}
		if !slices.Contains(n.query, name) {
			const unknown = "is not a parameter of this call"
			if meant := n.meantParameter(name); meant != "" {
				return domain.InvalidField(shown, unknown+"; did you mean %s?", meant)
			}
			return domain.InvalidField(shown, unknown)
		}
		for _, v := range query[name] {
			if !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl) {
				return domain.InvalidField(shown, "must not contain control characters or invalid UTF-8")
			}
		}
	}
	return nil
}

// meantParameter returns the parameter that an unknown one was meant as, or "".
func (n *Names) meantParameter(name string) string {
	if meant := spelling.Meant(name, n.query); meant != "" {
		return meant
	}
	return firstOf(guessed[spelling.Fold(name)].names, n.query)
}

// CheckKeyHeader refuses a header that was meant as the Idempotency-Key: without it a repeated call is paid twice.
func CheckKeyHeader(h http.Header) error {
	for name := range h {
		folded := spelling.Fold(name)
		if name != "Idempotency-Key" && (strings.HasPrefix(folded, "xidempoten") ||
			spelling.Meant(name, []string{"Idempotency-Key", "Idempotent-Key"}) != "") {
			return domain.InvalidField("Idempotency-Key",
				"is the header of this call; one with a name like it is ignored")
		}
	}
	return nil
}
