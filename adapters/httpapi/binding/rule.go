package binding

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/domain"
)

// rule is what a value has to be: a schema of the document, compiled for checking.
type rule struct {
	kind     string // a type of JSON; empty: any
	nullable bool
	values   []any // it is one of; nil: any

	least, above, most, multiple *float64 // of a number

	minLength, maxLength *int // of a text, in characters
	pattern              *regexp.Regexp
	shape                string // the pattern in words
	moment               bool   // RFC 3339

	items              *rule // of an array
	minItems, maxItems *int

	members  []member // of an object, by name
	required []string // in the order of the declaration
	others   *rule    // of members that are none of these; nil: any

	either []*rule // one of them holds; nil: this one alone counts
}

// member is a named value of an object.
type member struct {
	name     string
	required bool
	rule     *rule
}

// compile returns the rule of a schema. It panics at what it cannot check, which is a fault of the program.
func compile(r huma.Registry, s *huma.Schema) *rule {
	for s.Ref != "" {
		s = r.SchemaFromRef(s.Ref)
	}
	if s.AllOf != nil || s.Not != nil || s.ExclusiveMaximum != nil || s.MinProperties != nil || s.MaxProperties != nil ||
		s.UniqueItems || len(s.DependentRequired) > 0 || s.ContentEncoding != "" {
		panic("httpapi: the schema of a request has a keyword that is not checked")
	}
	compiled := &rule{kind: s.Type, nullable: s.Nullable, values: s.Enum,
		least: s.Minimum, above: s.ExclusiveMinimum, most: s.Maximum, multiple: s.MultipleOf,
		minLength: s.MinLength, maxLength: s.MaxLength, shape: s.PatternDescription,
		minItems: s.MinItems, maxItems: s.MaxItems, required: s.Required}
	switch s.Format {
	case "date-time":
		compiled.moment = true
	case "", "int32", "int64", "double":
	default:
		panic("httpapi: the format " + s.Format + " of a request is not checked")
	}
	if s.Pattern != "" {
		compiled.pattern = regexp.MustCompile(s.Pattern)
	}
	if s.Items != nil {
		compiled.items = compile(r, s.Items)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		compiled.members = append(compiled.members,
			member{name, slices.Contains(s.Required, name), compile(r, s.Properties[name])})
	}
	if others, ok := s.AdditionalProperties.(*huma.Schema); ok {
		compiled.others = compile(r, others)
	}
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		compiled.either = append(compiled.either, compile(r, one))
	}
	return compiled
}

// checker collects the issues of one input.
type checker struct{ issues []domain.FieldIssue }

// MaxIssues bounds how many issues one answer lists.
const MaxIssues = 50

func (c *checker) add(field, issue string) {
	one := domain.FieldIssue{Field: field, Issue: issue}
	if len(c.issues) < MaxIssues && !slices.Contains(c.issues, one) {
		c.issues = append(c.issues, one)
	}
}

// check adds what is wrong with a value at a path: the first keyword that it violates, in words, and the issues of
// what it holds.
func (c *checker) check(r *rule, path string, v any) {
	if v == nil && r.nullable {
		return
	}
	if r.either != nil {
		if !slices.ContainsFunc(r.either, func(one *rule) bool { return one.holds(v) }) {
			c.add(path, "is not valid")
		}
		return
	}
	if issue := r.issue(v); issue != "" {
		c.add(path, issue)
	}
	switch v := v.(type) {
	case []any:
		if r.kind == huma.TypeArray && r.items != nil {
			for i, item := range v {
				c.check(r.items, path+"["+strconv.Itoa(i)+"]", item)
			}
		}
	case map[string]any:
		if r.kind == huma.TypeObject {
			c.checkMembers(r, path, v)
		}
	}
}

// holds reports whether a value has no issue.
func (r *rule) holds(v any) bool {
	var c checker
	c.check(r, "", v)
	return c.issues == nil
}

func (c *checker) checkMembers(r *rule, path string, object map[string]any) {
	at := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	for i := range r.members {
		m := &r.members[i]
		v, given := object[m.name]
		switch {
		case !given && m.required:
			for _, name := range r.required {
				if _, given := object[name]; !given {
					c.add(at(name), "is required")
				}
			}
		case !given, v == nil && !m.required: // null counts as absent
		default:
			c.check(m.rule, at(m.name), v)
		}
	}
	if r.others == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if _, known := slices.BinarySearchFunc(r.members, name, compareMember); !known {
			shown := name
			if len(name) > 64 || !strictjson.IsName(name) {
				shown = "?" // a key is text of the caller
			}
			c.check(r.others, at(shown), object[name])
		}
	}
}

func compareMember(m member, name string) int { return strings.Compare(m.name, name) }

// issue returns the first keyword that a value itself violates, in words, or "".
func (r *rule) issue(v any) string {
	if r.values != nil && !slices.Contains(r.values, v) {
		names := make([]string, len(r.values))
		for i, one := range r.values {
			names[i] = fmt.Sprint(one)
		}
		return "must be one of " + strings.Join(names, ", ")
	}
	switch r.kind {
	case huma.TypeNumber, huma.TypeInteger:
		return r.numberIssue(v)
	case huma.TypeString:
		text, ok := v.(string)
		if !ok {
			return "must be a string"
		}
		return r.textIssue(text)
	case huma.TypeArray:
		list, ok := v.([]any)
		switch {
		case !ok:
			return "must be an array"
		case r.minItems != nil && len(list) < *r.minItems:
			return fmt.Sprintf("must have at least %d items", *r.minItems)
		case r.maxItems != nil && len(list) > *r.maxItems:
			return fmt.Sprintf("must have at most %d items", *r.maxItems)
		}
	case huma.TypeBoolean:
		if _, ok := v.(bool); !ok {
			return "must be true or false"
		}
	case huma.TypeObject:
		if _, ok := v.(map[string]any); !ok {
			return "must be an object"
		}
	}
	return ""
}

func (r *rule) numberIssue(v any) string {
	kind := map[bool]string{true: "an integer", false: "a number"}[r.kind == huma.TypeInteger]
	x, ok := v.(float64)
	if whole, isInt := v.(int64); isInt { // of a parameter
		x, ok = float64(whole), true
	}
	text := func(bound *float64) string { return strconv.FormatFloat(*bound, 'f', -1, 64) }
	switch {
	case !ok:
		return "must be " + kind
	case r.least != nil && x < *r.least:
		return "must be " + kind + " of at least " + text(r.least)
	case r.above != nil && x <= *r.above:
		return "must be " + kind + " above " + text(r.above)
	case r.most != nil && x > *r.most:
		return "must be " + kind + " of at most " + text(r.most)
	case r.multiple != nil && *r.multiple == 1 && x != math.Trunc(x):
		return "must be a whole number"
	case r.multiple != nil && math.Mod(x, *r.multiple) != 0:
		return "must be a multiple of " + text(r.multiple)
	case r.kind == huma.TypeInteger && x != math.Trunc(x):
		return "must be an integer"
	}
	return ""
}

func (r *rule) textIssue(text string) string {
	switch n := utf8.RuneCountInString(text); {
	case r.minLength != nil && n < *r.minLength:
		return fmt.Sprintf("must have at least %d characters", *r.minLength)
	case r.maxLength != nil && n > *r.maxLength:
		return fmt.Sprintf("must have at most %d characters", *r.maxLength)
	case r.moment && !isMoment(text):
		return "must be a time in RFC 3339"
	case r.pattern != nil && !r.pattern.MatchString(text) && r.shape != "":
		return "must be " + r.shape
	case r.pattern != nil && !r.pattern.MatchString(text):
		return "must match " + r.pattern.String()
	}
	return ""
}

func isMoment(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}
