package httpapi

import (
	"cmp"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// configureHuma sets the options that huma has for all APIs of a process only.
var configureHuma = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
})

// schemaName names a schema for its Go type without the suffix of the role:
// sessionReply is Session.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if base, ok := strings.CutSuffix(name, "Reply"); ok {
		return base
	}
	if base, ok := strings.CutSuffix(name, "Body"); ok {
		return base + "Request"
	}
	return name
}

func operationOf(item *huma.PathItem, method string) *huma.Operation {
	return map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post,
		http.MethodPut: item.Put, http.MethodPatch: item.Patch,
		http.MethodDelete: item.Delete}[method]
}

func envelopeSchema(success bool, data, err, meta *huma.Schema) *huma.Schema {
	return &huma.Schema{
		Type:                 huma.TypeObject,
		Required:             []string{"success", "data", "error", "meta"},
		AdditionalProperties: false,
		Properties: map[string]*huma.Schema{
			"success": {Type: huma.TypeBoolean, Enum: []any{success}, Description: "Whether the call succeeded."},
			"data":    data,
			"error":   err,
			"meta":    meta,
		},
	}
}

// envelopeOf returns the schema of a success. The operations share all of it but the data.
func envelopeOf(data *huma.Schema) *huma.Schema {
	return &huma.Schema{AllOf: []*huma.Schema{
		{Ref: "#/components/schemas/Envelope"},
		{Type: huma.TypeObject, Required: []string{"data"}, Properties: map[string]*huma.Schema{"data": data}},
	}}
}

// errorSchema returns the schema of every error. Which codes an operation answers with a status are
// the names of the response's examples.
func errorSchema() *huma.Schema {
	return &huma.Schema{
		Type:                 huma.TypeObject,
		Required:             []string{"code", "message", "retryable"},
		AdditionalProperties: false,
		Properties: map[string]*huma.Schema{
			"code":      {Type: huma.TypeString, Description: "For programs; it does not change."},
			"message":   {Type: huma.TypeString, Description: "For people: what to do next."},
			"retryable": {Type: huma.TypeBoolean, Description: "Whether the same request may succeed later."},
			"details":   {Type: huma.TypeObject, AdditionalProperties: true, Description: "What a program can act on."},
		},
	}
}

// amend adds bounds and a description to a property of an object.
func amend(s *huma.Schema, name string, bounds huma.Schema, doc string) {
	p := s.Properties[name]
	p.Description = cmp.Or(doc, p.Description)
	p.Pattern, p.PatternDescription = cmp.Or(
		bounds.Pattern,
		p.Pattern,
	), cmp.Or(
		bounds.PatternDescription,
		p.PatternDescription,
	)
	p.MaxLength = cmp.Or(bounds.MaxLength, p.MaxLength)
	p.Minimum, p.Maximum = cmp.Or(bounds.Minimum, p.Minimum), cmp.Or(bounds.Maximum, p.Maximum)
	p.ExclusiveMinimum = cmp.Or(bounds.ExclusiveMinimum, p.ExclusiveMinimum)
	p.MultipleOf = cmp.Or(bounds.MultipleOf, p.MultipleOf)
	if bounds.Enum != nil {
		p.Enum = bounds.Enum
	}
}

// nullable lets properties that are objects be null, which huma's tags cannot.
func nullable(s *huma.Schema, names ...string) *huma.Schema {
	for _, name := range names {
		p := s.Properties[name]
		s.Properties[name] = &huma.Schema{Description: p.Description,
			AnyOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
	}
	return s
}
