package apiclient_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/format"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the methods and types again")

// TestTheCodeIsThatOfTheDocument compares the methods and types with what the generator makes of the document.
func TestTheCodeIsThatOfTheDocument(t *testing.T) {
	g := &generator{document: readDocument(), users: map[string][]string{}, inputs: map[string]bool{}}
	methods := g.methods()
	for name, body := range map[string]string{"operations.go": methods, "types.go": g.types()} {
		head := "// Code generated from the OpenAPI document by go generate; DO NOT EDIT.\n\npackage apiclient\n\n"
		if imports := g.imports(body); imports != "" {
			head += "import (\n" + imports + ")\n\n"
		}
		text, err := format.Source([]byte(head + body))
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, body)
		}
		if *update {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s is not what the document has (%v): go generate ./adapters/apiclient", name, err)
		}
	}
}

// generator writes Go.
type generator struct {
	*document
	b      strings.Builder
	users  map[string][]string // what uses a schema
	inputs map[string]bool     // schemas that are written as the input of an operation
}

func (g *generator) line(form string, args ...any) { fmt.Fprintf(&g.b, form+"\n", args...) }

// take returns what was written so far.
func (g *generator) take() string {
	defer g.b.Reset()
	return g.b.String()
}

func (g *generator) imports(body string) (list string) {
	for _, path := range []string{"context", "encoding/json", "iter", "net/http", "time"} {
		if strings.Contains(body, path[strings.LastIndexByte(path, '/')+1:]+".") {
			list += fmt.Sprintf("%q\n", path)
		}
	}
	return list
}

// initials are written in capitals in names.
var initials = map[string]string{"id": "ID", "ip": "IP", "ips": "IPs", "url": "URL", "api": "API", "gb": "GB", "ms": "MS",
	"usdt": "USDT", "http": "HTTP", "https": "HTTPS", "ttl": "TTL", "qr": "QR", "csv": "CSV", "html": "HTML", "socks5": "SOCKS5", "ok": "OK",
	"openapi": "OpenAPI", "seo": "SEO"}

var capitals = regexp.MustCompile(`Ip([A-Z]|$)`)

// nameOf returns a name of the document as Go writes it.
func nameOf(text string) string {
	var out string
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("-_.: ", r) }) {
		if upper := initials[word]; upper != "" {
			word = upper
		}
		out += strings.ToUpper(word[:1]) + word[1:]
	}
	return capitals.ReplaceAllString(out, "IP$1")
}

// argument returns a name as that of a parameter.
func argument(text string) string {
	first, rest, _ := strings.Cut(text, "_")
	return first + nameOf(rest)
}

// comment writes a text of the document, its paragraphs filled again.
func (g *generator) comment(text string) {
	if text == "" {
		return
	}
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		row := "//"
		if i > 0 {
			g.line("//")
		}
		for _, w := range strings.Fields(paragraph) {
			if len(row)+len(w) >= 112 {
				g.line("%s", row)
				row = "//"
			}
			row += " " + w
		}
		g.line("%s", row)
	}
}

// typeOf returns the Go type of a value.
func (g *generator) typeOf(s *schema, user string) string {
	r, name, _ := g.resolve(s)
	if len(r.AnyOf) > 2 { // the data of events, by their types
		return "map[string]string"
	}
	if name != "" {
		if !slices.Contains(g.users[name], user) {
			g.users[name] = append(g.users[name], user)
		}
		return nameOf(name)
	}
	kinds := r.types()
	is := func(kind string) bool { return slices.Contains(kinds, kind) }
	switch {
	case len(r.OneOf) == 2 && len(kinds) == 0: // texts that may be numbers
		return "PolicyEntry"
	case is("string") && r.Format == "date-time":
		return "time.Time"
	case is("string"):
		return "string"
	case is("boolean"):
		return "bool"
	case (is("integer") || r.MultipleOf == 1) && strings.HasSuffix(user, "bytes"):
		return "int64"
	case is("integer") || r.MultipleOf == 1:
		return "int"
	case is("number"):
		return "json.Number"
	case is("array"):
		return "[]" + g.typeOf(r.Items, user)
	}
	if more, ok := r.Additional.(map[string]any); ok && len(more) > 0 {
		kind := map[any]string{"string": "string", "integer": "int", "number": "json.Number"}[more["type"]]
		return "map[string]" + kind
	}
	return "map[string]any"
}

// isList reports whether a Go type has a value that is null.
func isList(typ string) bool { return strings.HasPrefix(typ, "[]") || strings.HasPrefix(typ, "map[") }

// fields writes the fields of a schema. What a change clears with null is Optional; in other requests null means
// the same as nothing, which is the zero value.
func (g *generator) fields(s *schema, of string, request, change bool) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		typ := g.typeOf(p, of+"."+name)
		r, _, nullable := g.resolve(p)
		left := !slices.Contains(s.Required, name)
		switch {
		case change && nullable:
			typ = "Optional[" + typ + "]"
		case !request && (nullable || left && len(r.Properties) > 0) && !isList(typ):
			typ = "*" + typ
		}
		tag := name
		if left {
			tag += ",omitzero"
		}
		g.comment(cmp.Or(p.Description, r.Description))
		g.line("%s %s `json:%q`", nameOf(name), typ, tag)
	}
}

// isRequest reports whether a schema is sent.
func isRequest(name string) bool {
	return strings.HasSuffix(name, "Request") || strings.HasPrefix(name, "Create")
}

// types writes the schemas that are no input of an operation by themselves, and the codes of refusals.
func (g *generator) types() string {
	schemas := maps.Clone(g.Components.Schemas)
	maps.DeleteFunc(schemas, func(name string, s *schema) bool {
		nested := slices.ContainsFunc(g.users[name], func(u string) bool { return strings.Contains(u, ".") })
		return name == "Error" || strings.HasSuffix(name, "Envelope") || strings.HasSuffix(name, "Data") || len(s.OneOf) > 0 || g.inputs[name] && !nested
	})
	written := map[string]string{}
	for name, s := range schemas { // first all, which finds the users
		if len(s.Properties) > 0 {
			g.fields(s, name, isRequest(name), false)
		}
		written[name] = g.take()
	}
	g.codes()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		s := schemas[name]
		g.comment(nameOf(name) + " " + g.used(name))
		if len(s.Enum) == 0 {
			g.line("type %s struct {\n%s}\n", nameOf(name), written[name])
			continue
		}
		g.line("type %s string\n\n// The values of %s.\nconst (", nameOf(name), nameOf(name))
		for _, v := range s.Enum {
			g.line("%s %s = %q", nameOf(name)+nameOf(v.(string)), nameOf(name), v)
		}
		g.line(")\n")
	}
	return g.take()
}

// used returns what a schema is used for.
func (g *generator) used(name string) string {
	what := "is the answer of "
	list := slices.Sorted(slices.Values(g.users[name]))
	if fields := slices.DeleteFunc(slices.Clone(list), func(u string) bool { return !strings.Contains(u, ".") }); len(fields) > 0 {
		what, list = "is the type of ", fields
	}
	more := ""
	if len(list) > 4 {
		list, more = list[:4], " and others"
	}
	if len(list) == 0 {
		return "is what a webhook receives."
	}
	return what + strings.Join(list, ", ") + more + "."
}

// codes writes the codes of refusals.
func (g *generator) codes() {
	messages := map[string]map[string]int{} // by code, how often each
	for _, o := range g.operations() {
		for _, r := range o.Responses {
			if r.Ref != "" {
				r = g.Components.Responses[lastOf(r.Ref)]
			}
			for _, e := range r.Content["application/json"].Examples {
				if e.Ref != "" {
					e = g.Components.Examples[lastOf(e.Ref)]
				}
				if e.Value.Error != nil {
					m := messages[e.Value.Error.Code]
					if m == nil {
						m = map[string]int{}
						messages[e.Value.Error.Code] = m
					}
					m[e.Value.Error.Message]++
				}
			}
		}
	}
	g.line("// The codes of refusals.\nconst (")
	for _, code := range slices.Sorted(maps.Keys(messages)) {
		texts := slices.SortedFunc(maps.Keys(messages[code]), func(a, b string) int {
			if n := messages[code][b] - messages[code][a]; n != 0 {
				return n
			}
			return strings.Compare(a, b)
		})
		name := "Err" + nameOf(strings.ToLower(code))
		g.comment(name + " means: " + texts[0])
		g.line("%s Code = %q", name, code)
	}
	g.line(")\n")
}
