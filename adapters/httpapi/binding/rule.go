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
	c := &rule{kind: s.Type, nullable: s.Nullable, values: s.Enum,
		least: s.Minimum, above: s.ExclusiveMinimum, most: s.Maximum, multiple: s.MultipleOf,
		minLength: s.MinLength, maxLength: s.MaxLength, shape: s.PatternDescription,
		minItems: s.MinItems, maxItems: s.MaxItems, required: s.Required}
	switch s.Format {
	case "date-time":
		c.moment = true
	case "", "int32", "int64", "double":
	default:
		panic("httpapi: the format " + s.Format + " of a request is not checked")
	}
	if s.Pattern != "" {
		c.pattern = regexp.MustCompile(s.Pattern)
	}
	if s.Items != nil {
		c.items = compile(r, s.Items)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		c.members = append(c.members, member{name, slices.Contains(s.Required, name), compile(r, s.Properties[name])})
	}
	if others, ok := s.AdditionalProperties.(*huma.Schema); ok {
		c.others = compile(r, others)
	}
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		c.either = append(c.either, compile(r, one))
	}
	return c
}

// checker collects the issues of one input.
type checker struct{ issues []domain.FieldIssue }

// MaxIssues bounds how many issues one answer lists.
const MaxIssues = 50

func (k *checker) add(field, issue string) {
	one := domain.FieldIssue{Field: field, Issue: issue}
	if len(k.issues) < MaxIssues && !slices.Contains(k.issues, one) {
		k.issues = append(k.issues, one)
	}
}

// check adds what is wrong with a value at a path: the first keyword that it violates, in words, and the issues of
// what it holds.
func (k *checker) check(c *rule, path string, v any) {
	if v == nil && c.nullable {
		return
	}
	if c.either != nil {
		if !slices.ContainsFunc(c.either, func(one *rule) bool { return one.holds(v) }) {
			k.add(path, "is not valid")
		}
		return
	}
	if issue := c.issue(v); issue != "" {
		k.add(path, issue)
	}
	switch v := v.(type) {
	case []any:
		if c.kind == huma.TypeArray && c.items != nil {
			for i, item := range v {
				k.check(c.items, path+"["+strconv.Itoa(i)+"]", item)
			}
		}
	case map[string]any:
		if c.kind == huma.TypeObject {
			k.checkMembers(c, path, v)
		}
	}
}

// holds reports whether a value has no issue.
func (c *rule) holds(v any) bool {
	var k checker
	k.check(c, "", v)
	return k.issues == nil
}

func (k *checker) checkMembers(c *rule, path string, object map[string]any) {
	at := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	for i := range c.members {
		m := &c.members[i]
		v, given := object[m.name]
		switch {
		case !given && m.required:
			for _, name := range c.required {
				if _, given := object[name]; !given {
					k.add(at(name), "is required")
				}
			}
		case !given, v == nil && !m.required: // null counts as absent
		default:
			k.check(m.rule, at(m.name), v)
		}
	}
	if c.others == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if _, known := slices.BinarySearchFunc(c.members, name, compareMember); !known {
			shown := name
			if len(name) > 64 || !strictjson.IsName(name) {
				shown = "?" // a key is text of the caller
			}
			k.check(c.others, at(shown), object[name])
		}
	}
}

func compareMember(m member, name string) int { return strings.Compare(m.name, name) }

// issue returns the first keyword that a value itself violates, in words, or "".
func (c *rule) issue(v any) string {
	if c.values != nil && !slices.Contains(c.values, v) {
		names := make([]string, len(c.values))
		for i, one := range c.values {
			names[i] = fmt.Sprint(one)
		}
		return "must be one of " + strings.Join(names, ", ")
	}
	switch c.kind {
	case huma.TypeNumber, huma.TypeInteger:
		return c.numberIssue(v)
	case huma.TypeString:
		text, ok := v.(string)
		if !ok {
			return "must be a string"
		}
		return c.textIssue(text)
	case huma.TypeArray:
		list, ok := v.([]any)
		switch {
		case !ok:
			return "must be an array"
		case c.minItems != nil && len(list) < *c.minItems:
			return fmt.Sprintf("must have at least %d items", *c.minItems)
		case c.maxItems != nil && len(list) > *c.maxItems:
			return fmt.Sprintf("must have at most %d items", *c.maxItems)
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

func (c *rule) numberIssue(v any) string {
	kind := map[bool]string{true: "an integer", false: "a number"}[c.kind == huma.TypeInteger]
	x, ok := v.(float64)
	if whole, isInt := v.(int64); isInt { // of a parameter
		x, ok = float64(whole), true
	}
	text := func(bound *float64) string { return strconv.FormatFloat(*bound, 'f', -1, 64) }
	switch {
	case !ok:
		return "must be " + kind
	case c.least != nil && x < *c.least:
		return "must be " + kind + " of at least " + text(c.least)
	case c.above != nil && x <= *c.above:
		return "must be " + kind + " above " + text(c.above)
	case c.most != nil && x > *c.most:
		return "must be " + kind + " of at most " + text(c.most)
	case c.multiple != nil && *c.multiple == 1 && x != math.Trunc(x):
		return "must be a whole number"
	case c.multiple != nil && math.Mod(x, *c.multiple) != 0:
		return "must be a multiple of " + text(c.multiple)
	case c.kind == huma.TypeInteger && x != math.Trunc(x):
		return "must be an integer"
	}
	return ""
}

func (c *rule) textIssue(text string) string {
	switch n := utf8.RuneCountInString(text); {
	case c.minLength != nil && n < *c.minLength:
		return fmt.Sprintf("must have at least %d characters", *c.minLength)
	case c.maxLength != nil && n > *c.maxLength:
		return fmt.Sprintf("must have at most %d characters", *c.maxLength)
	case c.moment && !isMoment(text):
		return "must be a time in RFC 3339"
	case c.pattern != nil && !c.pattern.MatchString(text) && c.shape != "":
		return "must be " + c.shape
	case c.pattern != nil && !c.pattern.MatchString(text):
		return "must match " + c.pattern.String()
	}
	return ""
}

func isMoment(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}
