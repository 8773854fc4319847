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
	a.doc.AddOperation(&huma.Operation{OperationID: "get-openapi", Method: http.MethodGet, Path: path,
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
	return sync.OnceValue(func() []byte {
		openapi.Finish(a.doc)
		text, err := json.Marshal(a.doc)
		if err != nil {
			panic("httpapi: the document cannot be written: " + err.Error())
		}
		return append(text, '\n')
	})
}
