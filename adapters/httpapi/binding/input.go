// Package binding reads what a request was sent with into the struct that its operation declares, and checks it: the
// tags of the fields are both the document's bounds and the rules.
package binding

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/domain"
)

// Input is what an operation reads: the parameters and the body of a struct. Its fields are parameters by the tags
// path, query and header, and the body is the field Body.
type Input struct {
	Parameters []*huma.Param // for the document
	Body       *huma.Schema  // nil: none

	params []param
	body   []int // the field
	rule   *rule // of the body
}

// param is a parameter and the field that it is read into: a text or an integer.
type param struct {
	in, name string
	usual    string // what an absent one counts as
	index    []int
	rule     *rule
}

// Source is a request whose path and query were parsed. A *gin.Context is one.
type Source interface {
	Param(name string) string
	Query(name string) string
	GetHeader(name string) string
}

// Of returns the input of a struct, whose schemas it adds to a registry. Unnamed types of a body are named for the
// operation. It panics at what cannot be read, which is a fault of the program.
func Of(t reflect.Type, r huma.Registry, operation string) *Input {
	in := &Input{}
	in.addParameters(t, nil, r)
	f, ok := t.FieldByName("Body")
	if !ok {
		return in
	}
	hint := operation + "Request"
	if t.Name() != "" {
		hint = t.Name() + f.Name
	}
	in.Body, in.body = huma.SchemaFromField(r, f, hint), f.Index
	in.rule = compile(r, in.Body)
	return in
}

// addParameters adds the parameters of a struct and of those that it embeds.
func (in *Input) addParameters(t reflect.Type, at []int, r huma.Registry) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(at[:len(at):len(at)], i)
		if f.Anonymous {
			in.addParameters(f.Type, index, r)
			continue
		}
		for _, place := range []string{"path", "query", "header"} {
			if name := f.Tag.Get(place); name != "" {
				in.add(param{in: place, name: name, usual: f.Tag.Get("default"), index: index}, f, r)
			}
		}
	}
}

func (in *Input) add(p param, f reflect.StructField, r huma.Registry) {
	if k := f.Type.Kind(); k != reflect.String && k != reflect.Int {
		panic("httpapi: the parameter " + p.name + " is neither a text nor an integer")
	}
	schema := huma.SchemaFromField(r, f, "")
	p.rule = compile(r, schema)
	in.params = append(in.params, p)
	text, old := schema.Description, schema.Deprecated
	schema.Description, schema.Deprecated = "", false
	in.Parameters = append(in.Parameters, &huma.Param{Name: p.name, In: p.in, Description: text,
		Required: p.in == "path", Deprecated: old, Schema: schema})
}

// Read reads a request and its body, which is valid JSON, into a struct of the input's type. It returns what is wrong
// with them, and no value that was sent.
func (in *Input) Read(s Source, body []byte, into reflect.Value) []domain.FieldIssue {
	var c checker
	for i := range in.params {
		c.read(s, &in.params[i], into)
	}
	if in.rule != nil {
		c.readBody(in.rule, body, into.FieldByIndex(in.body))
	}
	return c.issues
}

// read reads a parameter. An empty one counts as absent.
func (c *checker) read(s Source, p *param, into reflect.Value) {
	var text string
	switch p.in {
	case "path":
		text = s.Param(p.name)
	case "query":
		text = s.Query(p.name)
	case "header":
		text = s.GetHeader(p.name)
	}
	if text == "" {
		if text = p.usual; text == "" {
			return
		}
	}
	field := into.FieldByIndex(p.index)
	if field.Kind() == reflect.String {
		field.SetString(text)
		c.check(p.rule, p.name, text)
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		c.check(p.rule, p.name, text)
		return
	}
	field.SetInt(n)
	c.check(p.rule, p.name, n)
}

// readBody checks a body and then binds it.
func (c *checker) readBody(r *rule, body []byte, into reflect.Value) {
	var v any
	bad := json.Unmarshal(body, &v)
	before := len(c.issues)
	if bad == nil {
		c.check(r, "", v)
	}
	if len(c.issues) > before {
		return
	}
	if bad == nil {
		bad = json.Unmarshal(body, into.Addr().Interface())
	}
	if bad != nil {
		c.add("body", "does not have the expected types")
	}
}
