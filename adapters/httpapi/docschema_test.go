package httpapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas are those of a document, each compiled once: openapi3filter compiles the schema of an answer, and that of each of
// its headers, for every answer.
type schemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

// documentURL is what the schemas of the document are below.
const documentURL = "https://example.com/openapi.json"

func newSchemas(text []byte) (*schemas, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	return &schemas{compiler: c}, c.AddResource(documentURL, doc)
}

// validate holds a value against the schema at a place in the document.
func (s *schemas) validate(place string, value any) error {
	s.mu.Lock()
	schema, err := s.compiler.Compile(documentURL + place)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// below returns the place of what has these names below another place.
func below(place string, names ...string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	for _, name := range names {
		place += "/" + escape.Replace(name)
	}
	return place
}

// check holds an answer against what an operation has for its status: the headers, and the body.
func (s *schemas) check(r *http.Request, route *routers.Route, a *answer) error {
	if a.header.Get("Content-Type") != "application/json" { // a page, a file or nothing
		return openapi3filter.ValidateResponse(r.Context(), (&openapi3filter.ResponseValidationInput{
			RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: route},
			Status:                 a.status, Header: a.header,
			Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true,
				SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.EnableFormatValidation()}},
		}).SetBodyBytes(a.body))
	}
	response := route.Operation.Responses.Status(a.status)
	if response == nil {
		return fmt.Errorf("the status %d is not documented", a.status)
	}
	place := response.Ref
	if place == "" {
		place = below("#/paths", route.Path, strings.ToLower(route.Method), "responses", strconv.Itoa(a.status))
	}
	for name, h := range response.Value.Headers {
		at := h.Ref
		if at == "" {
			at = below(place, "headers", name)
		}
		if err := s.header(at, name, h.Value, a.header); err != nil {
			return fmt.Errorf("the header %s: %w", name, err)
		}
	}
	if response.Value.Content["application/json"] == nil {
		return fmt.Errorf("the status %d has no body of JSON", a.status)
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err != nil {
		return err
	}
	return s.validate(below(place, "content", "application/json", "schema"), body)
}

// header holds a header against what is documented at a place.
func (s *schemas) header(place, name string, h *openapi3.Header, of http.Header) error {
	list := of.Values(name)
	if len(list) == 0 {
		if h.Required {
			return errors.New("it is missing")
		}
		return nil
	}
	var value any = list[0]
	if h.Schema.Value.Type.Is("integer") {
		if _, err := strconv.ParseInt(list[0], 10, 64); err != nil {
			return err
		}
		value = json.Number(list[0])
	}
	return s.validate(below(place, "schema"), value)
}
