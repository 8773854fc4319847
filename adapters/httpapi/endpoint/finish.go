package endpoint

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/domain"
)

// declareDocument declares the document itself, the one answer without envelope.
func (a *API) declareDocument() {
	const path = "/openapi.json"
	a.huma.OpenAPI().AddOperation(&huma.Operation{OperationID: "get-openapi", Method: http.MethodGet, Path: path,
		Tags: []string{"service"}, Summary: "This document", Description: "It is the same at /openapi.json, " +
			"and has an ETag.", Security: []map[string][]string{},
		Responses: map[string]*huma.Response{"200": {
			Description: "The OpenAPI 3.1 document, without envelope.",
			Content: map[string]*huma.MediaType{openapi.JSONType: {
				Schema: &huma.Schema{
					Type:                 huma.TypeObject,
					Required:             []string{"openapi", "info", "paths"},
					AdditionalProperties: true,
					Properties: map[string]*huma.Schema{
						"openapi": {Type: huma.TypeString, Description: "The version of the specification."},
						"info":    {Type: huma.TypeObject, Description: "Title, version and description."},
						"paths":   {Type: huma.TypeObject, Description: "The operations."},
					},
				},
				Example: map[string]any{"openapi": "3.1.0", "info": map[string]any{}, "paths": map[string]any{}},
			}},
		}, "400": a.errorResponse(&Operation{Open: true}, http.StatusBadRequest, Refusals(domain.ErrInvalid)),
			"421": a.errorResponse(&Operation{Open: true}, http.StatusMisdirectedRequest, Refusals(ErrMisdirected))}})
}

// FinishDocument freezes the document when all operations are declared, and returns what writes it
// when it is called first: that is a third of what a start computes, and few ask for it.
func (a *API) FinishDocument() func() []byte {
	a.declareDocument()
	doc := a.huma.OpenAPI()
	schemas := doc.Components.Schemas.Map()
	delete(schemas, "ErrorModel") // huma's own errors, which are never answered
	delete(schemas, "ErrorDetail")
	for _, schema := range schemas {
		a.standard(schema)
	}
	for _, item := range doc.Paths {
		for _, h := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if h == nil {
				continue
			}
			for _, p := range h.Parameters {
				a.standard(p.Schema)
			}
		}
	}
	return sync.OnceValue(func() []byte { return documentText(doc) })
}

// documentText writes the document. It panics where the operations cannot be described.
func documentText(doc *huma.OpenAPI) []byte {
	text, err := json.Marshal(doc)
	if err == nil {
		text, err = openapi.Compact(text)
	}
	if err != nil {
		panic("httpapi: the document cannot be written: " + err.Error())
	}
	return append(text, '\n')
}

// standard removes the descriptions of patterns, which the standard does not have,
// and keeps them for the wording of issues.
func (a *API) standard(schema *huma.Schema) {
	if schema.PatternDescription != "" {
		a.patterns[schema.Pattern] = schema.PatternDescription
	}
	schema.PatternDescription = ""
	if schema.Items != nil {
		a.standard(schema.Items)
	}
	for _, p := range schema.Properties {
		a.standard(p)
	}
}
