package httpapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"agentproxy/adapters/httpapi"
	"agentproxy/adapters/httpapi/endpoint"
)

func init() {
	openapi3filter.RegisterBodyDecoder("text/html",
		func(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
			b, err := io.ReadAll(body)
			return string(b), err
		})
	openapi3filter.RegisterBodyDecoder(
		"image/png",
		func(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
			b, err := io.ReadAll(body)
			if err != nil {
				return nil, err
			}
			_, err = png.Decode(bytes.NewReader(b))
			return string(b), err
		},
	)
}

// document is the service's own OpenAPI document, which every answer is held
// against.
type document struct {
	doc  *openapi3.T
	text *schemas
	mu   sync.Mutex
	seen map[string]bool // operation, status and code
}

// theDocument is the document of the first server that was asked. It takes longer to write and to load than
// most tests take, and is the same for all: TestDocument compares two.
var theDocument struct {
	once sync.Once
	doc  *openapi3.T
	text *schemas
	err  error
}

func newDocument(t testing.TB, s *httpapi.Server) *document {
	t.Helper()
	d := &theDocument
	asked := false
	d.once.Do(func() {
		asked = true
		text := closeSchemas(t, documentOf(s))
		if d.doc, d.err = openapi3.NewLoader().LoadFromData(text); d.err == nil {
			d.text, d.err = newSchemas(text)
		}
	})
	if !asked {
		s.IDs.New("req_") // as the request does, so that no id depends on which test was the first
	}
	if d.err != nil {
		t.Fatalf("the document does not load: %v", d.err)
	}
	return &document{doc: d.doc, text: d.text, seen: map[string]bool{}}
}

// closeSchemas returns a document whose objects have no more than their schemas, so that an answer with a field that is
// not documented is found. An object that is another one and more becomes one schema with the properties of both.
func closeSchemas(t testing.TB, text []byte) []byte {
	var doc struct {
		Components struct {
			Schemas map[string]map[string]any
		}
	}
	var all map[string]any
	if err := errors.Join(json.Unmarshal(text, &doc), json.Unmarshal(text, &all)); err != nil {
		t.Fatal(err)
	}
	schemas := doc.Components.Schemas
	for _, s := range schemas {
		merge(schemas, s)
		if s["properties"] != nil && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
	}
	all["components"].(map[string]any)["schemas"] = schemas
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// merge replaces what an object is made of by the properties of all parts.
func merge(schemas map[string]map[string]any, s map[string]any) {
	parts, _ := s["allOf"].([]any)
	if delete(s, "allOf"); parts == nil {
		return
	}
	properties, required := map[string]any{}, []any{}
	for _, p := range parts {
		part := p.(map[string]any)
		if ref, ok := part["$ref"].(string); ok {
			part = schemas[ref[len("#/components/schemas/"):]]
			merge(schemas, part)
		}
		maps.Copy(properties, part["properties"].(map[string]any))
		more, _ := part["required"].([]any)
		required = append(required, more...)
	}
	s["type"], s["properties"], s["required"] = "object", properties, required
}

// documentOf returns what a server answers for its document.
func documentOf(s *httpapi.Server) []byte {
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/v1/openapi.json", nil))
	return rec.Body.Bytes()
}

// route finds the operation of a request; nil when there is none.
func (d *document) route(method, path string) *routers.Route {
	path, ok := strings.CutPrefix(path, endpoint.Prefix)
	if !ok {
		return nil
	}
	var found *routers.Route
	for template, item := range d.doc.Paths.Map() {
		op := item.GetOperation(method)
		if op != nil && matches(template, path) && (found == nil || !strings.Contains(template, "{")) {
			found = &routers.Route{Spec: d.doc, Path: template, PathItem: item, Method: method, Operation: op}
		}
	}
	return found
}

func matches(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	for i := range want {
		if len(want) != len(got) || want[i] != got[i] && (!strings.HasPrefix(want[i], "{") || got[i] == "") {
			return false
		}
	}
	return true
}

// check holds an answer against the operation that the document has for the
// request; a request that the document does not know must answer 404 or 405.
func (d *document) check(t testing.TB, r *http.Request, a *answer) {
	t.Helper()
	if a.header.Get("X-Request-ID") == "" && strings.HasPrefix(a.path, "/v1/") &&
		!strings.HasPrefix(a.path, "/v1/openapi") {
		t.Errorf("%s %s: no X-Request-ID", a.method, a.path)
	}
	route := d.route(r.Method, r.URL.Path)
	if route == nil {
		if strings.HasPrefix(a.path, "/v1") && a.status != http.StatusNotFound &&
			a.status != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %d, but the document has no such route", a.method, a.path, a.status)
		}
		return
	}
	if err := d.text.check(r, route, a); err != nil {
		t.Errorf("%s %s: the answer is not as documented: %v\n%s", a.method, a.path, err, a.body)
	}
	if media := route.Operation.Responses.Status(a.status).Value.Content["application/json"]; a.status >= 400 &&
		media.Examples[a.str("error.code")] == nil {
		t.Errorf("%s %s: %d %s is not documented", a.method, a.path, a.status, a.str("error.code"))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[fmt.Sprintf("%s %d %s", route.Operation.OperationID, a.status, a.str("error.code"))] = true
}
