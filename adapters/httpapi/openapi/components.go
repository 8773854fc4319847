package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Finish gives a document its final form, for readers and generators of clients: enumerations have names, and what
// occurs more than once, like every refusal, is a component.
func Finish(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas.Map()
	names := enumNames(doc.Components.Schemas)
	allowNull(doc.Components.Schemas)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		finishSchema(schemas, names, schemas[name])
	}
	finishObjects(doc)
	var s sites
	for o := range operationsOf(doc) {
		for i, p := range o.Parameters {
			finishSchema(schemas, names, p.Schema)
			name := camel(p.In + "_" + strings.ReplaceAll(p.Name, "-", "_"))
			s.parameters = append(s.parameters, site[huma.Param]{p, func(ref *huma.Param) { o.Parameters[i] = ref }, name})
		}
		for status, r := range o.Responses {
			for _, m := range r.Content {
				finishSchema(schemas, names, m.Schema)
			}
			s.response(o, status, r)
		}
	}
	describeOnce(schemas) // when no enumeration is added any more
	c := doc.Components
	c.Parameters = share(s.parameters, 2, func(name string) *huma.Param {
		return &huma.Param{Ref: "#/components/parameters/" + name}
	})
	c.Headers = share(s.headers, 2, func(name string) *huma.Header {
		return &huma.Header{Ref: "#/components/headers/" + name}
	})
	c.Examples = share(s.examples, 2, func(name string) *huma.Example {
		return &huma.Example{Ref: "#/components/examples/" + name}
	})
	for _, media := range s.replies {
		if only := media.Examples[onlyReply]; len(media.Examples) == 1 && only != nil && only.Ref == "" {
			media.Example, media.Examples = only.Value, nil
		}
	}
	c.Responses = share(s.responses, 1, func(name string) *huma.Response {
		return &huma.Response{Ref: "#/components/responses/" + name}
	})
}

// operationsOf iterates over the operations by path.
func operationsOf(doc *huma.OpenAPI) iter.Seq[*huma.Operation] {
	return func(yield func(*huma.Operation) bool) {
		for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
			item := doc.Paths[path]
			for _, o := range []*huma.Operation{item.Delete, item.Get, item.Patch, item.Post, item.Put} {
				if o != nil && !yield(o) {
					return
				}
			}
		}
	}
}

// camel returns a name with underscores in camel case.
func camel(code string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(code, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + strings.ToLower(word[1:]))
	}
	return b.String()
}

// site is a place whose value may become a reference to a component.
type site[T any] struct {
	value   *T
	replace func(ref *T)
	name    string // of the component
}

// sites are the places of a document, by the kind of component.
type sites struct {
	parameters []site[huma.Param]
	headers    []site[huma.Header]
	examples   []site[huma.Example]
	responses  []site[huma.Response]
	replies    []*huma.MediaType // of successes
}

// onlyReply is the name of the example of a success.
const onlyReply = "reply"

// response adds a response and what it has.
func (s *sites) response(o *huma.Operation, status string, r *huma.Response) {
	for key, h := range r.Headers {
		s.headers = append(s.headers, site[huma.Header]{h, func(ref *huma.Header) { r.Headers[key] = ref },
			headers[key].component})
	}
	media := r.Content[JSONType]
	if media == nil {
		return
	}
	for key, e := range media.Examples {
		name := key // the code of a refusal
		if status < "400" {
			name = "Reply" + digest(e)
		}
		s.examples = append(s.examples, site[huma.Example]{e, func(ref *huma.Example) { media.Examples[key] = ref }, name})
	}
	if status < "400" {
		s.replies = append(s.replies, media)
		return
	}
	name := camel(textOfStatus(status))
	if len(media.Examples) == 1 {
		for code := range media.Examples {
			name = camel(code)
		}
	}
	if status == "429" && len(media.Examples) == 1 && r.Headers["X-RateLimit-Limit"] == nil {
		name = "Open" + name // of a call without a credential, which has no rate
	}
	s.responses = append(s.responses, site[huma.Response]{r, func(ref *huma.Response) { o.Responses[status] = ref }, name})
}

// digest returns what equal examples have in common, whatever the order of their members.
func digest(e *huma.Example) string {
	var v any
	if err := json.Unmarshal(textOf(e), &v); err != nil {
		panic(err) // it was written as JSON
	}
	sum := sha256.Sum256(textOf(v))
	return hex.EncodeToString(sum[:4])
}

// textOf returns a part of the document as JSON. It panics at what cannot be written, a fault of the program.
func textOf(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("httpapi: the document cannot be written: " + err.Error())
	}
	return text
}

// share replaces what occurs at least so often by references to components, which it returns. Different values of one
// name are numbered, the most frequent first.
func share[T any](all []site[T], least int, ref func(name string) *T) map[string]*T {
	counts := map[string]map[string]int{} // by name and value
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = string(textOf(s.value))
		if counts[s.name] == nil {
			counts[s.name] = map[string]int{}
		}
		counts[s.name][texts[i]]++
	}
	shared := map[string]*T{}
	for i, s := range all {
		values := counts[s.name]
		if values[texts[i]] < least {
			continue
		}
		before := 0
		for text, n := range values {
			// Of two that are as frequent the text decides, so that the document is always the same.
			if n > values[texts[i]] || n == values[texts[i]] && text < texts[i] {
				before++
			}
		}
		name := s.name
		if before > 0 {
			name += strconv.Itoa(before + 1)
		}
		shared[name] = s.value
		s.replace(ref(name))
	}
	return shared
}

// finishSchema replaces the enumerations in a schema by references to schemas of their own, and removes the
// descriptions of patterns, which the standard does not have. A nullable enumeration becomes a choice, because null is
// none of its values.
func finishSchema(schemas map[string]*huma.Schema, names map[string]string, s *huma.Schema) {
	if s == nil {
		return
	}
	s.PatternDescription = ""
	if name := names[joined(s.Enum)]; name != "" {
		schemas[name] = &huma.Schema{Type: huma.TypeString, Enum: s.Enum}
		ref := schemaRef + name
		if s.Nullable {
			s.AnyOf = []*huma.Schema{{Ref: ref}, {Type: "null"}}
		} else {
			s.Ref = ref
		}
		s.Type, s.Enum, s.Nullable = "", nil, false
		return
	}
	finishSchema(schemas, names, s.Items)
	for _, p := range s.Properties {
		finishSchema(schemas, names, p)
	}
	if others, ok := s.AdditionalProperties.(*huma.Schema); ok {
		finishSchema(schemas, names, others)
	}
	for _, one := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		finishSchema(schemas, names, one)
	}
}

// textOfStatus returns the reason phrase of a status in the form of a code: NOT_FOUND for 404.
func textOfStatus(status string) string {
	code, err := strconv.Atoi(status)
	if err != nil {
		panic("httpapi: " + status + " is no status")
	}
	return strings.ToUpper(strings.ReplaceAll(http.StatusText(code), " ", "_"))
}
