package endpoint

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

// newDocument prepares the document that the operations are added to.
func (a *API) newDocument() {
	openapi.Configure()
	group := a.Engine.Group(Prefix)
	a.huma = huma.NewAPI(huma.Config{
		OpenAPI: &huma.OpenAPI{
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
				Schemas: huma.NewMapRegistry("#/components/schemas/", openapi.SchemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"ApiKey": {Type: "apiKey", In: "header", Name: "X-API-Key",
						Description: "The api_key of the registration. It holds every permission. It may be sent as Bearer too."},
					"Bearer": {Type: "http", Scheme: "bearer", BearerFormat: "JWT",
						Description: "An access_token of POST /auth/token. It is used when both are sent."},
				},
			},
		},
		Formats: map[string]huma.Format{
			openapi.JSONType: {Marshal: a.marshalForHuma, Unmarshal: json.Unmarshal},
			"json":           {Marshal: a.marshalForHuma}, // the suffix of application/problem+json
		},
		DefaultFormat: openapi.JSONType,
	}, adapter{a, group})
	registry := a.huma.OpenAPI().Components.Schemas
	openapi.RegisterEnums(registry)
	schemas := registry.Map()
	null, meta := &huma.Schema{Type: "null"}, a.SchemaOf(metaReply{})
	schemas["Error"] = openapi.ErrorSchema()
	schemas["ErrorEnvelope"] = openapi.EnvelopeSchema(false, null, &huma.Schema{Ref: "#/components/schemas/Error"}, meta)
	schemas["Envelope"] = openapi.EnvelopeSchema(true, &huma.Schema{}, null, meta)
}

// marshalForHuma writes what huma answers by itself: the issues of an input that
// it found invalid, as a refusal.
func (a *API) marshalForHuma(w io.Writer, v any) error {
	e, isError := v.(*huma.ErrorModel)
	c, isCall := w.(*callWriter)
	switch {
	case !isError || !isCall:
		return json.NewEncoder(w).Encode(v)
	case e.Status >= http.StatusInternalServerError:
		a.Refuse(c.call, errInternal)
	default:
		a.Refuse(c.call, a.invalidInput(c.call.op, e.Errors))
	}
	return nil
}

// declare completes an operation with what its kind always has, and gives
// huma's form of it.
func (a *API) declare(o *Operation) huma.Operation {
	refuses := slices.Clone(o.Refuses)
	h := huma.Operation{OperationID: o.ID, Method: o.Method, Path: o.Path, Tags: []string{o.Tag},
		Summary: o.Summary, Description: o.Doc, MaxBodyBytes: -1, BodyReadTimeout: -1}
	if o.Open {
		h.Security = []map[string][]string{}
		refuses = append(refuses, ErrMisdirected)
	} else {
		if o.Scope != "" {
			refuses = append(refuses, account.ErrScope)
			h.Extensions = map[string]any{"x-required-permission": string(o.Scope)}
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
	refuses = append(refuses, domain.ErrUnavailable, errInternal)
	o.Refuses = refuses
	a.ops[o.ID] = o
	return h
}

// documentOp completes the document of an operation once huma has read its input.
func (a *API) documentOp(o *Operation) {
	item := a.huma.OpenAPI().Paths[o.Path]
	h := operationOf(item, o.Method)
	for _, p := range h.Parameters {
		if p.In == "query" {
			o.query = append(o.query, p.Name)
		}
	}
	if o.OwnBody != nil {
		h.RequestBody.Content = map[string]*huma.MediaType{openapi.JSONType: {Schema: a.SchemaOf(o.OwnBody)}}
	}
	o.hasBody = h.RequestBody != nil && len(h.RequestBody.Content) > 0
	if !o.hasBody {
		h.RequestBody = nil
	} else {
		h.RequestBody.Required = !o.EmptyBody
		h.RequestBody.Content[openapi.JSONType].Example = o.Example
	}
	if o.Method != http.MethodGet {
		o.Refuses = append(o.Refuses, errTooLarge)
		o.fields = a.namesOf(o, h.RequestBody)
	}
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
	return a.huma.OpenAPI().Components.Schemas.Schema(t, true, t.Name())
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
func (a *API) OpenAPI() *huma.OpenAPI { return a.huma.OpenAPI() }
