package endpoint

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/binding"
	"agentproxy/adapters/httpapi/format"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/adapters/httpapi/value"
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

// declare completes an operation with what its kind always has, and has it documented with its input.
func (a *API) declare(o *Operation, in *binding.Input) {
	o.Refuses = append(slices.Clone(o.Refuses), o.usualRefusals()...)
	if o.Method != http.MethodGet {
		o.Refuses = append(o.Refuses, errTooLarge)
	}
	o.completeRefusals()
	body := in.Body
	if o.OwnBody != nil {
		body = a.SchemaOf(o.OwnBody)
	}
	o.hasBody = body != nil
	o.names = binding.NamesOf(a.doc.Components.Schemas, in.Parameters, body, o.Published)
	a.ops[o.ID] = o
	a.Document(func() { a.documentOperation(o, in.Parameters, body) })
}

// Document registers a function that completes the document. It is called when the document is asked for first, which
// is rare: what the document is made from takes 3 MB of a heap of 13.
func (a *API) Document(add func()) { a.parts = append(a.parts, add) }

// documentOperation documents an operation with its parameters and its body, which may be nil.
func (a *API) documentOperation(o *Operation, in []*huma.Param, body *huma.Schema) {
	h := &huma.Operation{OperationID: o.ID, Method: o.Method, Path: o.Path, Tags: []string{o.Tag},
		Summary: o.Summary, Description: o.Doc, Parameters: in, Responses: map[string]*huma.Response{}}
	if o.Open {
		h.Security = []map[string][]string{}
	} else if o.Scope != "" {
		h.Extensions = map[string]any{"x-required-permission": string(o.Scope)}
	}
	if body != nil {
		h.RequestBody = &huma.RequestBody{Required: !o.EmptyBody,
			Content: map[string]*huma.MediaType{openapi.JSONType: {Schema: body, Example: o.Example}}}
	}
	for _, r := range o.OK {
		h.Responses[strconv.Itoa(r.Status)] = a.successResponse(o, r)
	}
	for status, errs := range o.codes {
		h.Responses[strconv.Itoa(status)] = a.errorResponse(o, status, slices.Clone(errs))
	}
	a.doc.AddOperation(h)
}

// usualRefusals returns the refusals that an operation has beside its own.
func (o *Operation) usualRefusals() (refuses []*domain.Error) {
	if o.Open {
		refuses = append(refuses, ErrMisdirected)
	} else {
		if o.Scope != "" {
			refuses = append(refuses, ErrScope)
		}
		if o.Keys <= WholeKeys {
			refuses = append(refuses, account.ErrKeyRestricted)
		}
		refuses = append(refuses, account.ErrInvalidKey, account.ErrExpiredToken, account.ErrDisabled,
			account.ErrRateLimited)
	}
	if o.Stores {
		refuses = append(refuses, account.ErrStorageLimit)
	}
	if o.Idempotent {
		refuses = append(refuses, domain.ErrIdempotencyConflict)
	}
	return append(refuses, domain.ErrUnavailable, errInternal)
}

// completeRefusals sets the codes that an operation answers, by status.
func (o *Operation) completeRefusals() {
	// First, so that the document has one example of its code, whatever else has the code.
	o.Refuses = append([]*domain.Error{errInvalid}, o.Refuses...)
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
}

// SchemaOf returns the schema of an example's type.
func (a *API) SchemaOf(v any) *huma.Schema {
	t := reflect.TypeOf(v)
	return a.doc.Components.Schemas.Schema(t, true, t.Name())
}

func (a *API) successResponse(o *Operation, r Reply) *huma.Response {
	switch r.Data.(type) {
	case PNG:
		return fileResponse(o, r, format.PNGType, "binary")
	case Text:
		return fileResponse(o, r, format.TextType, "")
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
		response.Content[format.CSVType] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
		if _, ok := r.Data.(printed); ok {
			response.Content[openapi.HTMLType] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
		}
	}
	return response
}

// fileResponse documents an answer that is no envelope.
func fileResponse(o *Operation, r Reply, mediaType, form string) *huma.Response {
	return &huma.Response{Description: r.Doc, Headers: responseHeaders(o, r.Status), Content: map[string]*huma.MediaType{
		mediaType: {Schema: &huma.Schema{Type: huma.TypeString, Format: form}},
	}}
}

func (a *API) errorResponse(o *Operation, status int, errs []*domain.Error) *huma.Response {
	slices.SortFunc(errs, func(a, b *domain.Error) int { return strings.Compare(a.Code, b.Code) })
	examples := map[string]*huma.Example{}
	descriptions := make([]string, len(errs))
	for i, e := range errs {
		descriptions[i] = e.Code
		examples[e.Code] = &huma.Example{Value: a.exampleEnvelope(false, nil, e)}
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

const apiDescription = `Sells proxy access to software agents: register, pick a product, create a session, route
traffic through its proxy address, report what came of it, rotate or renew, terminate, recharge.

Every answer but a picture and the text of a reveal link is an envelope: success, data, error, meta. On success error
is null; on an error data is null and error has a code for programs, a message for people, whether it is worth to
retry, and details. A request for a proxy answers 421 MISDIRECTED_REQUEST with where the gateway is. On loopback a
foreign Host answers 421 too, and a request that a browser sends for another site 403 CROSS_SITE_REQUEST; so does a
POST without credential everywhere.

Bodies are JSON objects of at most 1 MiB, of 16 KiB where no credential is needed. An unknown query
parameter is refused, and an unknown field where the schema has additionalProperties false. Elsewhere a field is
ignored, unless it is a near miss of one, a word of the other form or level, or a usual word for another name. Keys
match exactly; one that is given twice, also in another case, is refused. Amounts are US dollars with at most 6
decimals; 1 GB is 1,000,000,000 bytes. Times are RFC 3339 in UTC. Lists
are paged by page and page_size, newest first.

Every answer has meta.request_id in X-Request-ID too. Every answer to a credential has the limit of requests in
X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset, and in RateLimit and RateLimit-Policy, as 429 describes
them, unless the account has no limit. A call costs 1, and 1 more for each 25 items beyond the first 25 that it makes,
changes or reads.`

var apiTags = []*huma.Tag{
	{Name: "service", Description: "The service itself. No credential is needed."},
	{Name: "account", Description: "Registration, credentials and the account."},
	{Name: "products", Description: "What is sold, where, and what fits."},
	{Name: "sessions", Description: "Buying, using and ending proxy sessions."},
	{Name: "workers", Description: "Sticky identities of their own inside one session."},
	{Name: "telemetry", Description: "What agents report of their requests, and what follows from it."},
	{Name: "billing", Description: "Balance, movements, recharges in USDT, and the agent's own spending guard."},
	{Name: "webhooks", Description: "What the service sends to agents by itself. See receive-event for its form."},
	{Name: "stats", Description: "Figures over all sessions and over time."},
}

// exampleEnvelope returns an answer as an example shows it.
func (a *API) exampleEnvelope(success bool, data any, e *domain.Error) any {
	errText := []byte("null")
	if e != nil {
		errText = appendError(nil, e)
	}
	out := struct {
		Success bool            `json:"success"`
		Data    json.RawMessage `json:"data"`
		Error   json.RawMessage `json:"error"`
		Meta    metaReply       `json:"meta"`
	}{success, strictjson.Append(nil, data), errText,
		metaReply{"req_1", value.Stamp(openapi.ExampleTime)}}
	return out
}

// responseHeaders documents the headers of an answer. Those that every answer has, the id of the request and the
// limit of requests, are in the description of the document: named at each success they would be a tenth of it.
func responseHeaders(o *Operation, status int) map[string]*huma.Header {
	var names []string
	limited := status == http.StatusTooManyRequests
	// Where a call has limits of its own too, the description of the document has to do.
	if !o.Open && limited && len(o.codes[status]) == 1 {
		names = append(names, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit",
			"RateLimit-Policy")
	}
	if limited || status == http.StatusServiceUnavailable {
		names = append(names, "Retry-After")
	}
	if status == http.StatusAccepted {
		names = append(names, "Location")
	}
	if o.Idempotent && status < 300 {
		names = append(names, "Idempotency-Replayed")
	}
	return openapi.Headers(names...)
}

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
		}, "400": a.errorResponse(&Operation{Open: true}, http.StatusBadRequest, Refusals(errInvalid)),
			"421": a.errorResponse(&Operation{Open: true}, http.StatusMisdirectedRequest, Refusals(ErrMisdirected))}})
}

// FinishDocument is called when all operations are declared, and returns what writes the document when it is called
// first. Nothing can be added to it then.
func (a *API) FinishDocument() func() []byte {
	return sync.OnceValue(func() []byte {
		for _, add := range a.parts {
			add()
		}
		a.declareDocument()
		openapi.Finish(a.doc)
		text, err := json.Marshal(a.doc)
		if err != nil {
			panic("httpapi: the document cannot be written: " + err.Error())
		}
		a.doc, a.parts = nil, nil // the text is all that is needed from now on
		return append(text, '\n')
	})
}
