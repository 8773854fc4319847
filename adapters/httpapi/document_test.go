package httpapi_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"agentproxy/adapters/httpapi/endpoint"
)

func TestDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})

	t.Run("is valid OpenAPI 3.1, examples included", func(t *testing.T) {
		doc, err := openapi3.NewLoader().LoadFromData(documentOf(w.server))
		w.must(err)
		if got := doc.OpenAPI; got != "3.1.0" {
			t.Errorf("version %s, want 3.1.0", got)
		}
		err = doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaPatternValidation())
		if err != nil {
			t.Error(err)
		}
	})

	t.Run("is the same whatever is set", func(t *testing.T) {
		other := newWorld(t, options{realTime: true, perMinute: 7, sessionLimit: 3, registrations: 9})
		if !bytes.Equal(documentOf(w.server), documentOf(other.server)) {
			t.Error("two servers have two documents")
		}
	})

	t.Run("has every route and no other", func(t *testing.T) {
		var served, documented []string
		param := regexp.MustCompile(`:(\w+)`)
		var heads, gets int
		for _, r := range w.server.Routes() {
			if path, ok := strings.CutPrefix(r.Path, endpoint.Prefix); ok && path != "" { // /v1 itself is a page
				if r.Method == http.MethodHead { // of every GET, so the document leaves it out
					heads++
					continue
				}
				if r.Method == http.MethodGet && r.Path != "/v1/reveal/:token" {
					gets++
				}
				served = append(served, r.Method+" "+param.ReplaceAllString(path, "{$1}"))
			}
		}
		for path, item := range w.doc.doc.Paths.Map() {
			for method := range item.Operations() {
				documented = append(documented, method+" "+path)
			}
		}
		if heads != gets {
			t.Errorf("HEAD is served on %d paths, GET on %d", heads, gets)
		}
		slices.Sort(served)
		slices.Sort(documented)
		if !slices.Equal(served, documented) {
			t.Errorf("served\n%s\ndocumented\n%s", strings.Join(served, "\n"), strings.Join(documented, "\n"))
		}
		for _, recharge := range []string{"GET /billing/recharge", "GET /billing/recharge/{order_id}/qr", "GET /billing/recharge/{order_id}/status", "POST /billing/recharge"} {
			if !slices.Contains(served, recharge) {
				t.Errorf("%s is not served", recharge)
			}
		}
		for _, webhook := range []string{"GET /account/webhook", "GET /account/webhook/deliveries", "POST /account/webhook/test",
			"POST /account/webhook/deliveries/{delivery_id}/redeliver", "POST /account/webhook/rotate-secret", "POST /account/keys",
			"GET /account/keys", "DELETE /account/keys/{key_id}", "POST /account/rotate-key"} {
			if !slices.Contains(served, webhook) {
				t.Errorf("%s is not served", webhook)
			}
		}
	})

	t.Run("every operation has a summary, and every answer an example of each code", func(t *testing.T) {
		for path, item := range w.doc.doc.Paths.Map() {
			for method, op := range item.Operations() {
				if op.Summary == "" || op.OperationID == "" || len(op.Tags) != 1 {
					t.Errorf("%s %s: summary, operationId or tag is missing", method, path)
				}
				for status, r := range op.Responses.Map() {
					checkExamples(t, method+" "+path+" "+status, status, r.Value)
				}
				if op.RequestBody != nil && op.RequestBody.Value.Content["application/json"].Example == nil {
					t.Errorf("%s %s: the body has no example", method, path)
				}
			}
		}
	})

	t.Run("names no field that is not lower case ASCII, which check relies on", func(t *testing.T) {
		rec := httptest.NewRecorder()
		w.server.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/v1/openapi.json", nil))
		var doc struct {
			Components struct {
				Schemas map[string]struct {
					Properties map[string]any `json:"properties"`
				} `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		name := regexp.MustCompile(`^[a-z0-9_]+$`)
		for schema, s := range doc.Components.Schemas {
			for p := range s.Properties {
				if !name.MatchString(p) {
					t.Errorf("%s.%s", schema, p)
				}
			}
		}
	})
}

// TestDocumentForGenerators checks what generators of clients and linters need.
func TestDocumentForGenerators(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	rec := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/openapi.json", nil))
	if n := rec.Body.Len(); n > 250_000 {
		t.Errorf("the document has %d bytes", n)
	}
	var doc struct {
		Paths      map[string]map[string]map[string]any
		Components map[string]map[string]map[string]any
	}
	w.must(json.Unmarshal(rec.Body.Bytes(), &doc))
	for path, item := range doc.Paths {
		for method, op := range item {
			if op["description"] == nil || op["summary"] == nil {
				t.Errorf("%s %s has no description", method, path)
			}
			for status, r := range op["responses"].(map[string]any) {
				if ref, _ := r.(map[string]any)["$ref"].(string); status >= "400" && !strings.HasPrefix(ref, "#/components/responses/") {
					t.Errorf("%s of %s %s is no component", status, method, path)
				}
				content, _ := r.(map[string]any)["content"].(map[string]any)
				media, _ := content["application/json"].(map[string]any)
				schema, _ := media["schema"].(map[string]any)
				properties, _ := schema["properties"].(map[string]any)
				if all, _ := schema["allOf"].([]any); all != nil {
					if ref := all[0].(map[string]any)["$ref"]; ref != "#/components/schemas/Envelope" {
						t.Errorf("the envelope of %s %s %s is %v", method, path, status, all[0])
					}
					properties, _ = all[1].(map[string]any)["properties"].(map[string]any)
				}
				for field, p := range properties {
					if field != "data" && p.(map[string]any)["description"] == nil { // that of Envelope
						t.Errorf("%s of %s %s %s has no description", field, method, path, status)
					}
				}
			}
		}
	}
	word := regexp.MustCompile("(^|_)[a-z]")
	flat := map[string]string{} // names of types as generators make them
	for kind, all := range doc.Components {
		for name := range all {
			if kind == "schemas" || kind == "parameters" || kind == "responses" {
				if other := flat[name]; other != "" {
					t.Errorf("%s and %s have one name", other, kind+"/"+name)
				}
				flat[name] = kind + "/" + name
			}
		}
	}
	for name, schema := range doc.Components["schemas"] {
		properties, _ := schema["properties"].(map[string]any)
		if all, _ := schema["allOf"].([]any); len(all) == 2 { // another one and more
			properties, _ = all[1].(map[string]any)["properties"].(map[string]any)
		}
		for field, p := range properties {
			property := p.(map[string]any)
			target, _ := property["$ref"].(string)
			described := doc.Components["schemas"][strings.TrimPrefix(target, "#/components/schemas/")]
			if property["description"] == nil && described["description"] == nil {
				t.Errorf("%s.%s has no description", name, field)
			}
			values, _ := property["enum"].([]any)
			if len(values) > 1 {
				t.Errorf("%s.%s is an enumeration without a name: %v", name, field, values)
			}
			nested := name + word.ReplaceAllStringFunc(field, func(s string) string { return strings.ToUpper(strings.TrimPrefix(s, "_")) })
			if other := flat[nested]; other != "" && (property["properties"] != nil || values != nil) {
				t.Errorf("%s.%s and %s have one name", name, field, other)
			}
		}
	}
	for name, closed := range map[string]any{"NewKeyRequest": false, "Key": nil, "Envelope": nil} { // an answer may grow
		if got := doc.Components["schemas"][name]["additionalProperties"]; got != closed {
			t.Errorf("additionalProperties of %s is %v, want %v", name, got, closed)
		}
	}
	for name, base := range map[string]string{"Rotate": "Session", "IssuedKey": "Key", "IpList": "Proxy", "AccountEvent": "WebhookEvent"} {
		parts, _ := doc.Components["schemas"][name]["allOf"].([]any)
		if len(parts) != 2 || parts[0].(map[string]any)["$ref"] != "#/components/schemas/"+base {
			t.Errorf("%s is no %s: %v", name, base, parts)
		}
	}
	create := doc.Components["schemas"]["CreateRequest"]["oneOf"]
	if forms, _ := create.([]any); len(forms) != 2 {
		t.Errorf("the forms of a create call are %v", create)
	}
	for _, name := range []string{"CreateNested", "CreateFlat"} {
		properties, _ := doc.Components["schemas"][name]["properties"].(map[string]any)
		for _, field := range []string{"allowed_ips", "auto_top_up", "labels", "max_cost", "policy", "provisioning_mode", "require"} {
			if properties[field] == nil {
				t.Errorf("%s has no %s, which both forms take", name, field)
			}
		}
		if required, _ := doc.Components["schemas"][name]["required"].([]any); len(required) != 2 {
			t.Errorf("%s requires %v", name, required)
		}
	}
}

// Generators of clients make no type of a schema that no operation on a path reaches, and their code for webhooks then
// does not compile.
func TestDocumentReachesEverySchema(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths      any
		Components map[string]map[string]any
	}
	w := newWorld(t, options{})
	w.must(json.Unmarshal(documentOf(w.server), &doc))
	reached := map[string]bool{}
	var reach func(part any)
	reach = func(part any) {
		switch part := part.(type) {
		case []any:
			for _, v := range part {
				reach(v)
			}
		case map[string]any:
			if ref, ok := part["$ref"].(string); ok && !reached[ref] {
				reached[ref] = true
				kind, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/components/"), "/")
				if doc.Components[kind][name] == nil {
					t.Errorf("%s does not exist", ref)
				}
				reach(doc.Components[kind][name])
			}
			for _, v := range part {
				reach(v)
			}
		}
	}
	reach(doc.Paths)
	if len(reached) < 100 {
		t.Fatalf("the paths reach %d components", len(reached))
	}
	for kind, all := range doc.Components {
		for name := range all {
			if kind != "securitySchemes" && !reached["#/components/"+kind+"/"+name] {
				t.Errorf("no operation on a path reaches %s/%s", kind, name)
			}
		}
	}
}

func checkExamples(t *testing.T, where, status string, r *openapi3.Response) {
	t.Helper()
	if picture := r.Content["image/png"]; picture != nil && len(r.Content) == 1 && status < "300" {
		return // a picture has no example
	}
	if plain := r.Content["text/plain"]; plain != nil && len(r.Content) == 1 && status < "300" {
		return
	}
	media := r.Content["application/json"]
	if media == nil {
		t.Errorf("%s: no content", where)
		return
	}
	if media.Example == nil && len(media.Examples) == 0 {
		t.Errorf("%s: no example", where)
	}
	if status < "400" {
		return
	}
	for code, example := range media.Examples {
		value := example.Value.Value.(map[string]any)
		if e, _ := value["error"].(map[string]any); e["code"] != code {
			t.Errorf("%s: the example of %s shows %v", where, code, value)
		}
	}
}
