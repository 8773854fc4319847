package apiclient_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"agentproxy/adapters/httpapi"
	"agentproxy/test/fake"
)

// document is what the tests and the generator read of the OpenAPI document.
type document struct {
	Paths      map[string]map[string]*operation `json:"paths"`
	Components struct {
		Schemas    map[string]*schema   `json:"schemas"`
		Parameters map[string]parameter `json:"parameters"`
		Responses  map[string]response  `json:"responses"`
		Examples   map[string]example   `json:"examples"`
	} `json:"components"`
}

type operation struct {
	ID          string      `json:"operationId"`
	Summary     string      `json:"summary"`
	Description string      `json:"description"`
	Parameters  []parameter `json:"parameters"`
	RequestBody *struct {
		Content map[string]media `json:"content"`
	} `json:"requestBody"`
	Responses map[string]response `json:"responses"`

	method, path string
}

type parameter struct {
	Ref         string  `json:"$ref"`
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Deprecated  bool    `json:"deprecated"`
	Description string  `json:"description"`
	Schema      *schema `json:"schema"`
}

type response struct {
	Ref     string           `json:"$ref"`
	Content map[string]media `json:"content"`
}

type media struct {
	Schema   *schema            `json:"schema"`
	Examples map[string]example `json:"examples"`
}

type example struct {
	Ref   string `json:"$ref"`
	Value struct {
		Error *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	} `json:"value"`
}

type schema struct {
	Ref         string             `json:"$ref"`
	Type        any                `json:"type"` // a name or a list of them
	Format      string             `json:"format"`
	Description string             `json:"description"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Items       *schema            `json:"items"`
	Additional  any                `json:"additionalProperties"`
	OneOf       []*schema          `json:"oneOf"`
	AnyOf       []*schema          `json:"anyOf"`
	AllOf       []*schema          `json:"allOf"`
	Enum        []any              `json:"enum"`
	MultipleOf  float64            `json:"multipleOf"`
}

// readDocument returns what a server answers for its document. No operation is called, so it has no use cases.
var readDocument = sync.OnceValue(func() *document {
	s := httpapi.New(httpapi.Config{}, httpapi.Deps{Log: slog.New(slog.DiscardHandler), Clock: fake.NewClock(),
		IDs: &fake.IDs{}})
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/openapi.json", nil))
	d := &document{}
	if err := json.Unmarshal(rec.Body.Bytes(), d); err != nil {
		panic(err)
	}
	for _, s := range d.Components.Schemas {
		d.merge(s)
	}
	for path, item := range d.Paths {
		for method, o := range item {
			o.method, o.path = strings.ToUpper(method), path
		}
	}
	return d
})

// merge gives an object that is another one and more the properties of both.
func (d *document) merge(s *schema) {
	parts := s.AllOf
	s.AllOf = nil
	for _, part := range parts {
		if part.Ref != "" {
			part = d.Components.Schemas[lastOf(part.Ref)]
			d.merge(part)
		}
		if s.Properties == nil {
			s.Properties = map[string]*schema{}
		}
		maps.Copy(s.Properties, part.Properties)
		s.Required = append(s.Required, part.Required...)
		s.Type = "object"
	}
}

// operations returns all operations by their ids.
func (d *document) operations() (all []*operation) {
	for _, item := range d.Paths {
		for _, o := range item {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *operation) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// lastOf returns the name that a reference ends with.
func lastOf(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// parameters returns the parameters of one place.
func (d *document) parameters(o *operation, in string) (all []parameter) {
	for _, p := range o.Parameters {
		if p.Ref != "" {
			p = d.Components.Parameters[lastOf(p.Ref)]
		}
		if p.In == in {
			all = append(all, p)
		}
	}
	return all
}

// resolve returns the schema that a reference names, or the schema itself, and whether it may be null.
func (d *document) resolve(s *schema) (_ *schema, name string, nullable bool) {
	if len(s.AnyOf) == 2 && s.AnyOf[1].Type == "null" {
		s, nullable = s.AnyOf[0], true
	}
	for s.Ref != "" {
		name = lastOf(s.Ref)
		s = d.Components.Schemas[name]
	}
	return s, name, nullable || slices.Contains(s.types(), "null")
}

func (s *schema) types() (all []string) {
	switch t := s.Type.(type) {
	case string:
		return []string{t}
	case []any:
		for _, one := range t {
			all = append(all, one.(string))
		}
	}
	return all
}

// bodies returns the forms of an operation's body.
func (d *document) bodies(o *operation) []*schema {
	if o.RequestBody == nil {
		return nil
	}
	s, _, _ := d.resolve(o.RequestBody.Content["application/json"].Schema)
	if len(s.OneOf) > 0 {
		return s.OneOf
	}
	return []*schema{o.RequestBody.Content["application/json"].Schema}
}

// succeeds returns the types of the answers of an operation, by the kind of their content, and whether one is
// that of a dry run.
func (d *document) succeeds(o *operation) (data map[string][]*schema, dry bool) {
	data = map[string][]*schema{}
	for status, r := range o.Responses {
		if status >= "300" {
			continue
		}
		for kind, m := range r.Content {
			s := m.Schema
			if len(s.AllOf) == 2 {
				s = s.AllOf[1].Properties["data"]
			}
			forms := s.OneOf
			if len(forms) == 0 {
				forms = []*schema{s}
			}
			for _, f := range forms {
				same := func(other *schema) bool { return f.Ref != "" && other.Ref == f.Ref }
				if dry = dry || lastOf(f.Ref) == "DryRun"; lastOf(f.Ref) != "DryRun" && !slices.ContainsFunc(data[kind], same) {
					data[kind] = append(data[kind], f)
				}
			}
		}
	}
	return data, dry
}
