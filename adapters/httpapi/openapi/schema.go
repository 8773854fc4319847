// Package openapi has what the OpenAPI document is made of beside the operations: schemas, enumerations,
// descriptions of fields, examples, and the components that operations share.
package openapi

import (
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// The media types of answers: an envelope, and a page for people.
const (
	JSONType = "application/json"
	HTMLType = "text/html"
)

const schemaRef = "#/components/schemas/"

// NewRegistry returns the schemas of a document, with those of enumerations.
func NewRegistry() huma.Registry {
	r := huma.NewMapRegistry(schemaRef, schemaName)
	registerEnums(r)
	return r
}

// Configure sets the options that huma has for all APIs of a process only.
var Configure = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
})

// schemaName names a schema for its Go type without the suffix of the role:
// accountReply is Account.
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

// EnvelopeSchema returns the schema of an envelope with the schemas of its members, which it describes.
func EnvelopeSchema(success bool, data, err, meta *huma.Schema) *huma.Schema {
	const none = "Always null."
	data.Description, err.Description = "Result.", none
	if !success {
		data.Description, err.Description = none, "Why it was refused; null if it was accepted."
	}
	meta.Description = "The id of the request and the time of the answer."
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

// EnvelopeOf returns the schema of a success. The operations share all of it but the data, which is described there.
func EnvelopeOf(data *huma.Schema) *huma.Schema {
	return &huma.Schema{AllOf: []*huma.Schema{
		{Ref: schemaRef + "Envelope"},
		{Required: []string{"data"}, Properties: map[string]*huma.Schema{"data": data}},
	}}
}

// ErrorSchema returns the schema of every error. Which codes an operation answers with a status are
// the names of the response's examples.
func ErrorSchema() *huma.Schema {
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
