package httpapi

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

// configureHuma sets the options that huma has for all APIs of a process only.
var configureHuma = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
})

// newAPI prepares the document that the operations are added to.
func (s *Server) newAPI() {
	configureHuma()
	group := s.engine.Group(Prefix)
	s.api = huma.NewAPI(huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "Agent Proxy Session Service", Version: s.cfg.Version,
				Description: apiDescription,
				Contact:     &huma.Contact{Name: "The operator of this service", URL: s.cfg.PublicURL},
				License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}},
			Servers: []*huma.Server{{URL: strings.TrimSuffix(s.cfg.PublicURL, "/") + Prefix}},
			Tags:    apiTags,
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"ApiKey": {Type: "apiKey", In: "header", Name: "X-API-Key",
						Description: "The api_key of the registration. It holds every permission. It may be sent as Bearer too."},
					"Bearer": {Type: "http", Scheme: "bearer", BearerFormat: "JWT",
						Description: "An access_token of POST /auth/token. It is used when both are sent."},
				},
			},
		},
		Formats: map[string]huma.Format{
			jsonType: {Marshal: s.marshalForHuma, Unmarshal: json.Unmarshal},
			"json":   {Marshal: s.marshalForHuma}, // the suffix of application/problem+json
		},
		DefaultFormat: jsonType,
	}, adapter{s, group})
	registry := s.api.OpenAPI().Components.Schemas
	for _, e := range enumerations {
		registry.RegisterTypeAlias(e.of, e.schema)
	}
	schemas := registry.Map()
	null, meta := &huma.Schema{Type: "null"}, s.schemaOf(metaReply{})
	schemas["Error"] = errorSchema()
	schemas["ErrorEnvelope"] = envelopeSchema(false, null, &huma.Schema{Ref: "#/components/schemas/Error"}, meta)
	schemas["Envelope"] = envelopeSchema(true, &huma.Schema{}, null, meta)
}

// marshalForHuma writes what huma answers by itself: the issues of an input that
// it found invalid, as a refusal.
func (s *Server) marshalForHuma(w io.Writer, v any) error {
	e, isError := v.(*huma.ErrorModel)
	c, isCall := w.(*callWriter)
	switch {
	case !isError || !isCall:
		return json.NewEncoder(w).Encode(v)
	case e.Status >= http.StatusInternalServerError:
		s.refuse(c.call, errInternal)
	default:
		s.refuse(c.call, s.invalidInput(c.call.op, e.Errors))
	}
	return nil
}

// callWriter is the writer of huma's own answers; it carries the call.
type callWriter struct {
	io.Writer
	call *call
}

// BodyWriter lets marshalForHuma find the call.
func (h *humaContext) BodyWriter() io.Writer {
	return &callWriter{Writer: h.ginContext.BodyWriter(), call: h.call}
}

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

// declare completes an operation with what its kind always has, and gives
// huma's form of it.
func (s *Server) declare(o *operation) huma.Operation {
	refuses := slices.Clone(o.Refuses)
	h := huma.Operation{OperationID: o.ID, Method: o.Method, Path: o.Path, Tags: []string{o.Tag},
		Summary: o.Summary, Description: o.Doc, MaxBodyBytes: -1, BodyReadTimeout: -1, Security: []map[string][]string{}}
	if o.Open {
		refuses = append(refuses, errMisdirected)
	} else {
		if o.Scope != "" {
			refuses = append(refuses, account.ErrScope)
			h.Extensions = map[string]any{"x-required-permission": string(o.Scope)}
		}
		h.Security = []map[string][]string{{"ApiKey": {}}, {"Bearer": {}}}
		refuses = append(
			refuses,
			account.ErrInvalidKey,
			account.ErrExpiredToken,
			account.ErrDisabled,
			account.ErrRateLimited,
		)
	}
	if o.Idempotent {
		refuses = append(refuses, domain.ErrIdempotencyConflict)
	}
	refuses = append(refuses, domain.ErrUnavailable, errInternal)
	o.Refuses = refuses
	s.ops[o.ID] = o
	return h
}

// documentOp completes the document of an operation once huma has read its input.
func (s *Server) documentOp(o *operation) {
	item := s.api.OpenAPI().Paths[o.Path]
	h := operationOf(item, o.Method)
	o.validatesQuery = o.Method != http.MethodGet
	for _, p := range h.Parameters {
		if p.In == "query" {
			o.query = append(o.query, p.Name)
		}
		o.validatesQuery = o.validatesQuery || p.In != "path"
	}
	if o.OwnBody != nil {
		h.RequestBody.Content = map[string]*huma.MediaType{jsonType: {Schema: s.schemaOf(o.OwnBody)}}
	}
	o.hasBody = h.RequestBody != nil && len(h.RequestBody.Content) > 0
	if !o.hasBody {
		h.RequestBody = nil
	} else {
		h.RequestBody.Required = !o.EmptyBody
		h.RequestBody.Content[jsonType].Example = o.Example
		o.fields = s.namesOf(h.RequestBody.Content[jsonType].Schema)
		o.Refuses = append(o.Refuses, errTooLarge)
	}
	if o.hasBody || o.validatesQuery {
		o.Refuses = append(o.Refuses, domain.ErrInvalid)
	}
	o.codes = map[int][]*domain.Error{}
	for _, e := range o.Refuses {
		status := statusOf[e.Kind]
		if !o.declares(status, e.Code) {
			o.codes[status] = append(o.codes[status], e)
		}
	}
	h.Responses = map[string]*huma.Response{}
	for _, r := range o.OK {
		h.Responses[strconv.Itoa(r.Status)] = s.successResponse(o, r)
	}
	for status, errs := range o.codes {
		h.Responses[strconv.Itoa(status)] = s.errorResponse(o, status, errs)
	}
}

func operationOf(item *huma.PathItem, method string) *huma.Operation {
	return map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post,
		http.MethodPut: item.Put, http.MethodPatch: item.Patch,
		http.MethodDelete: item.Delete}[method]
}

// namesOf returns the fields of a schema: nil if it takes any.
func (s *Server) namesOf(schema *huma.Schema) (names strictjson.Names) {
	for schema != nil && schema.Ref != "" {
		schema = s.api.OpenAPI().Components.Schemas.SchemaFromRef(schema.Ref)
	}
	if schema == nil {
		return nil
	}
	if schema.Items != nil {
		return s.namesOf(schema.Items)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		names = append(names, strictjson.Name{Name: name, Within: s.namesOf(schema.Properties[name])})
	}
	return names
}

// schemaOf returns the schema of an example's type.
func (s *Server) schemaOf(v any) *huma.Schema {
	t := reflect.TypeOf(v)
	return s.api.OpenAPI().Components.Schemas.Schema(t, true, t.Name())
}

func (s *Server) successResponse(o *operation, r reply) *huma.Response {
	switch r.Data.(type) {
	case qrCode:
		return qrResponse(o, r)
	case text:
		return textResponse(o, r)
	}
	data := s.schemaOf(r.Data)
	example := map[string]*huma.Example{"reply": {Value: s.exampleEnvelope(true, r.Data, nil)}}
	if r.Or != nil {
		data = &huma.Schema{OneOf: []*huma.Schema{data, s.schemaOf(r.Or)}}
		example["reply_or"] = &huma.Example{Value: s.exampleEnvelope(true, r.Or, nil)}
	}
	response := &huma.Response{
		Description: r.Doc,
		Headers:     responseHeaders(o, r.Status),
		Content: map[string]*huma.MediaType{jsonType: {
			Schema:   envelopeOf(data),
			Examples: example,
		}},
	}
	if o.CSV {
		documentCSV(response)
		if _, ok := r.Data.(printed); ok {
			response.Content[htmlType] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
		}
	}
	return response
}

func (s *Server) errorResponse(o *operation, status int, errs []*domain.Error) *huma.Response {
	slices.SortFunc(errs, func(a, b *domain.Error) int { return strings.Compare(a.Code, b.Code) })
	examples := map[string]*huma.Example{}
	descriptions := make([]string, len(errs))
	for i, e := range errs {
		descriptions[i] = e.Code
		examples[e.Code] = &huma.Example{Value: s.exampleEnvelope(false, nil, withExampleDetails(e))}
	}
	return &huma.Response{
		Description: strings.Join(descriptions, ", "),
		Headers:     responseHeaders(o, status),
		Content: map[string]*huma.MediaType{jsonType: {
			Schema:   &huma.Schema{Ref: "#/components/schemas/ErrorEnvelope"},
			Examples: examples,
		}},
	}
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
