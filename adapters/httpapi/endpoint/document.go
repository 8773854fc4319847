package endpoint

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/binding"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

// newDocument prepares the document that the operations are added to.
func (a *API) newDocument() {
	openapi.Configure()
	a.doc = &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Agent Proxy Session Service", Version: a.Version,
			Description: apiDescription,
			Contact:     &huma.Contact{Name: "The operator of this service", URL: a.PublicURL},
			License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}},
		Servers: []*huma.Server{{URL: strings.TrimSuffix(a.PublicURL, "/") + Prefix}},
		Tags:    apiTags,
		// Of every operation that does not have its own: one without a credential has none.
		Security: []map[string][]string{{"ApiKey": {}}, {"Bearer": {}}},
		Components: &huma.Components{
			Schemas: openapi.NewRegistry(),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"ApiKey": {Type: "apiKey", In: "header", Name: "X-API-Key",
					Description: "The api_key of the registration. It holds every permission. It may be sent as Bearer too."},
				"Bearer": {Type: "http", Scheme: "bearer", BearerFormat: "JWT",
					Description: "An access_token of POST /auth/token. It is used when both are sent."},
			},
		},
	}
	schemas := a.doc.Components.Schemas.Map()
	null, meta := &huma.Schema{Type: "null"}, a.SchemaOf(metaReply{})
	schemas["Error"] = openapi.ErrorSchema()
	schemas["ErrorEnvelope"] = openapi.EnvelopeSchema(false, null, &huma.Schema{Ref: "#/components/schemas/Error"}, meta)
	schemas["Envelope"] = openapi.EnvelopeSchema(true, &huma.Schema{}, null, meta)
}

// declare completes an operation with what its kind always has, and documents it with its input.
func (a *API) declare(o *Operation, in *binding.Input) {
	o.Refuses = append(slices.Clone(o.Refuses), o.usualRefusals()...)
	h := &huma.Operation{OperationID: o.ID, Method: o.Method, Path: o.Path, Tags: []string{o.Tag},
		Summary: o.Summary, Description: o.Doc, Parameters: in.Parameters}
	if o.Open {
		h.Security = []map[string][]string{}
	} else if o.Scope != "" {
		h.Extensions = map[string]any{"x-required-permission": string(o.Scope)}
	}
	for _, p := range in.Parameters {
		if p.In == "query" {
			o.query = append(o.query, p.Name)
		}
	}
	body := in.Body
	if o.OwnBody != nil {
		body = a.SchemaOf(o.OwnBody)
	}
	if o.hasBody = body != nil; o.hasBody {
		h.RequestBody = &huma.RequestBody{Required: !o.EmptyBody,
			Content: map[string]*huma.MediaType{openapi.JSONType: {Schema: body, Example: o.Example}}}
	}
	if o.Method != http.MethodGet {
		o.Refuses = append(o.Refuses, errTooLarge)
		o.fields = a.namesOf(o, body)
	}
	a.ops[o.ID] = o
	a.documentAnswers(o, h)
	a.doc.AddOperation(h)
}

// usualRefusals returns the refusals that an operation has beside its own.
func (o *Operation) usualRefusals() (refuses []*domain.Error) {
	if o.Open {
		refuses = append(refuses, ErrMisdirected)
	} else {
		if o.Scope != "" {
			refuses = append(refuses, account.ErrScope)
		}
		refuses = append(
			refuses,
			account.ErrInvalidKey,
			account.ErrExpiredToken,
			account.ErrDisabled,
			account.ErrRateLimited,
		)
	}
	if o.Stores {
		refuses = append(refuses, account.ErrStorageLimit)
	}
	if o.Idempotent {
		refuses = append(refuses, domain.ErrIdempotencyConflict)
	}
	return append(refuses, domain.ErrUnavailable, errInternal)
}

// documentAnswers documents what an operation answers.
func (a *API) documentAnswers(o *Operation, h *huma.Operation) {
	// First, so that the document has one example of its code, whatever else has the code.
	o.Refuses = append([]*domain.Error{domain.ErrInvalid}, o.Refuses...)
	o.codes = map[int][]*domain.Error{}
	for _, e := range o.Refuses {
		status := StatusOf[e.Kind]
		if e.Code == errNoRoute.Code {
			e = e.Msgf("nothing has this id or name; list what there is") // one example for all
		}
		if !o.declares(status, e.Code) {
			o.codes[status] = append(o.codes[status], e)
		}
	}
	h.Responses = map[string]*huma.Response{}
	for _, r := range o.OK {
		h.Responses[strconv.Itoa(r.Status)] = a.successResponse(o, r)
	}
	for status, errs := range o.codes {
		h.Responses[strconv.Itoa(status)] = a.errorResponse(o, status, errs)
	}
}

// SchemaOf returns the schema of an example's type.
func (a *API) SchemaOf(v any) *huma.Schema {
	t := reflect.TypeOf(v)
	return a.doc.Components.Schemas.Schema(t, true, t.Name())
}

func (a *API) successResponse(o *Operation, r Reply) *huma.Response {
	switch r.Data.(type) {
	case PNG:
		return qrResponse(o, r)
	case Text:
		return textResponse(o, r)
	}
	data := a.SchemaOf(r.Data)
	example := map[string]*huma.Example{"reply": {Value: a.exampleEnvelope(true, r.Data, nil)}}
	if r.Or != nil {
		data = &huma.Schema{OneOf: []*huma.Schema{data, a.SchemaOf(r.Or)}}
		example["reply_or"] = &huma.Example{Value: a.exampleEnvelope(true, r.Or, nil)}
	}
	response := &huma.Response{
		Description: r.Doc,
		Headers:     responseHeaders(o, r.Status),
		Content: map[string]*huma.MediaType{openapi.JSONType: {
			Schema:   openapi.EnvelopeOf(data),
			Examples: example,
		}},
	}
	if o.CSV {
		documentCSV(response)
		if _, ok := r.Data.(printed); ok {
			response.Content[openapi.HTMLType] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
		}
	}
	return response
}

func (a *API) errorResponse(o *Operation, status int, errs []*domain.Error) *huma.Response {
	slices.SortFunc(errs, func(a, b *domain.Error) int { return strings.Compare(a.Code, b.Code) })
	examples := map[string]*huma.Example{}
	descriptions := make([]string, len(errs))
	for i, e := range errs {
		descriptions[i] = e.Code
		examples[e.Code] = &huma.Example{Value: a.exampleEnvelope(false, nil, withExampleDetails(e))}
	}
	return &huma.Response{
		Description: strings.Join(descriptions, ", "),
		Headers:     responseHeaders(o, status),
		Content: map[string]*huma.MediaType{openapi.JSONType: {
			Schema:   &huma.Schema{Ref: "#/components/schemas/ErrorEnvelope"},
			Examples: examples,
		}},
	}
}

// OpenAPI returns the document, to which more than operations may be added.
func (a *API) OpenAPI() *huma.OpenAPI { return a.doc }
