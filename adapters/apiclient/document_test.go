package apiclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
)

// ownMethods are those of Client that are no operations.
var ownMethods = []string{"Do", "GoString", "String"}

// TestTheClientHasWhatTheDocumentHas calls every method with every field set, against a service that answers every
// field of the document, and compares both. It does not trust the generator.
func TestTheClientHasWhatTheDocumentHas(t *testing.T) {
	s := &documented{document: readDocument(), t: t, sent: map[string]map[string]bool{}}
	c, err := apiclient.New("http://api.test", "ak_test")
	if err != nil {
		t.Fatal(err)
	}
	c.HTTP = &http.Client{Transport: s}
	client := reflect.ValueOf(c)
	for i := range client.NumMethod() {
		name := client.Type().Method(i).Name
		if slices.Contains(ownMethods, name) {
			continue
		}
		s.called = name
		s.call(client.Method(i))
	}
	for _, o := range s.operations() {
		sent := s.sent[o.ID]
		if sent == nil {
			t.Errorf("no method sends %s", o.ID)
			continue
		}
		want := map[string]bool{}
		for _, in := range []string{"query", "header"} {
			for _, p := range s.parameters(o, in) {
				if !p.Deprecated {
					want[in+" "+p.Name] = true
				}
			}
		}
		for i := range s.bodies(o) {
			want[fmt.Sprint("body ", i)] = true
		}
		for kind := range first(s.succeeds(o)) {
			want["answer "+kind] = true
		}
		if !maps.Equal(sent, want) {
			t.Errorf("%s takes %v, its methods use %v", o.ID, want, sent)
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

// documented answers as the document has it.
type documented struct {
	*document
	t       *testing.T
	called  string                     // the method under test
	sent    map[string]map[string]bool // by operation
	answers int                        // since the call began
	data    any                        // of the last answer
}

// call calls a method with all arguments, and compares its result with what was answered.
func (s *documented) call(m reflect.Value) {
	s.answers = 0
	in := []reflect.Value{reflect.ValueOf(context.Background())}
	for i := 1; i < m.Type().NumIn()-1; i++ {
		v := reflect.New(m.Type().In(i)).Elem()
		s.fill(v)
		in = append(in, v)
	}
	out := m.Call(in)
	if out[0].Kind() == reflect.Func { // all pages
		items := 0
		for _, err := range out[0].Seq2() {
			if items++; !err.IsNil() {
				s.t.Errorf("%s: %v", s.called, err)
			}
		}
		if s.answers != 2 || items != 2 {
			s.t.Errorf("%s reads %d pages with %d items, want 2 with one each", s.called, s.answers, items)
		}
		return
	}
	if err, failed := out[1].Interface().(error); failed || s.answers != 1 {
		s.t.Errorf("%s: %v after %d answers", s.called, err, s.answers)
		return
	}
	if got, ok := out[0].Interface().([]byte); ok {
		if string(got) != s.data {
			s.t.Errorf("%s returns %s, want %v", s.called, got, s.data)
		}
		return
	}
	text, err := json.Marshal(out[0].Interface())
	if err != nil {
		s.t.Fatal(err)
	}
	if got := decoded(s.t, text); !reflect.DeepEqual(got, s.data) {
		s.t.Errorf("%s returns\n%v\nof\n%v", s.called, got, s.data)
	}
}

func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

var someTime = time.Date(2026, 5, 15, 12, 0, 0, 5e8, time.UTC)

// fill sets every field.
func (s *documented) fill(v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = someTime
		return
	case *json.Number:
		*p = "1.5"
		return
	case *apiclient.Optional[string]:
		*p = apiclient.Set("text")
		return
	case *apiclient.Optional[bool]:
		*p = apiclient.Set(true)
		return
	case *apiclient.Optional[json.Number]:
		*p = apiclient.Set(json.Number("1.5"))
		return
	case *apiclient.Optional[int]:
		*p = apiclient.Set(3)
		return
	case *apiclient.Optional[[]string]:
		*p = apiclient.Set([]string{"text"})
		return
	case *apiclient.Optional[apiclient.KeyReach]:
		*p = apiclient.Set(apiclient.KeyReach("own"))
		return
	case *apiclient.Optional[apiclient.KeyBudgetRequest]:
		*p = apiclient.Set(apiclient.KeyBudgetRequest{Total: "1.5", Daily: "1.5", PerPurchase: "1.5"})
		return
	case *apiclient.Optional[[]int]:
		*p = apiclient.Set([]int{3})
		return
	case *apiclient.Optional[[]apiclient.PolicyEntry]:
		*p = apiclient.Set([]apiclient.PolicyEntry{"443"})
		return
	case *apiclient.Optional[apiclient.AutoTopUpRequest]:
		var r apiclient.AutoTopUpRequest
		s.fill(reflect.ValueOf(&r).Elem())
		*p = apiclient.Set(r)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		s.fill(v.Index(0))
	case reflect.Map:
		one := reflect.New(v.Type().Elem()).Elem()
		if one.Kind() == reflect.Interface {
			one.Set(reflect.ValueOf("text"))
		} else {
			s.fill(one)
		}
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), one)
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Cursor" { // which an iterator sets
				s.fill(v.Field(i))
			} else if !strings.HasPrefix(s.called, "All") {
				v.Field(i).SetString("here")
			}
		}
	default:
		s.t.Fatalf("%s has a field of type %s, which this test cannot fill", s.called, v.Type())
	}
}

// RoundTrip records a request and answers it.
func (s *documented) RoundTrip(r *http.Request) (*http.Response, error) {
	o := s.operationOf(r)
	if o == nil {
		return nil, fmt.Errorf("the document has no %s %s", r.Method, r.URL.Path)
	}
	sent := s.sent[o.ID]
	if sent == nil {
		sent = map[string]bool{}
		s.sent[o.ID] = sent
	}
	query := r.URL.Query()
	for name := range query {
		sent["query "+name] = true
	}
	if r.Header.Get("Idempotency-Key") != "" {
		sent["header Idempotency-Key"] = true
	}
	if r.Header.Get("X-API-Key") != "ak_test" {
		s.t.Errorf("%s has no key", s.called)
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if len(text) > 0 {
		sent[s.bodyOf(o, decoded(s.t, text))] = true
	}
	kind := r.Header.Get("Accept")
	if kind == "" {
		kind = "application/json"
	}
	sent["answer "+kind] = true
	s.answers++
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(s.answer(o, kind, query.Get("dry_run") == "true", query.Get("cursor"))))}, nil
}

func (s *documented) operationOf(r *http.Request) *operation {
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1"), "/")
	for _, o := range s.operations() {
		template := strings.Split(o.path, "/")
		same := o.method == r.Method && len(template) == len(path)
		for i := 0; same && i < len(path); i++ {
			same = template[i] == path[i] || strings.HasPrefix(template[i], "{") && path[i] == "text"
		}
		if same {
			return o
		}
	}
	return nil
}

// bodyOf returns which form of the body was sent: the one with the very same fields.
func (s *documented) bodyOf(o *operation, body any) string {
	var differs string
	for i, form := range s.bodies(o) {
		if differs = s.difference(o.ID, form, body); differs == "" {
			return fmt.Sprint("body ", i)
		}
	}
	s.t.Errorf("%s: %s", s.called, differs)
	return "body of another form"
}

// difference compares the names of fields.
func (s *documented) difference(where string, of *schema, v any) string {
	r, _, _ := s.resolve(of)
	switch v := v.(type) {
	case []any:
		return s.difference(where, r.Items, v[0])
	case map[string]any:
		names := slices.Sorted(maps.Keys(r.Properties))
		if len(names) == 0 {
			return "" // of any form
		}
		if sent := slices.Sorted(maps.Keys(v)); !slices.Equal(sent, names) {
			return fmt.Sprintf("%s has %v, sent is %v", where, names, sent)
		}
		for _, name := range names {
			if d := s.difference(where+"."+name, r.Properties[name], v[name]); d != "" {
				return d
			}
		}
	}
	return ""
}

// answer returns an answer with every field of the document, and keeps its data. A page that a cursor asks for
// is the last one.
func (s *documented) answer(o *operation, kind string, dry bool, cursor string) string {
	data, _ := s.succeeds(o)
	of := data[kind][0]
	if dry {
		of = &schema{Ref: "#/components/schemas/DryRun"}
	}
	s.data = s.value(of)
	if of.Ref == "" {
		s.data = "a text"
		return "a text"
	}
	if cursor == "text cursor" {
		s.data.(map[string]any)["pagination"].(map[string]any)["next_cursor"] = nil
	}
	text, err := json.Marshal(map[string]any{"success": true, "data": s.data, "error": nil, "meta": nil})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// value returns a value of a schema with all that may be in it.
func (s *documented) value(of *schema) any {
	r, _, _ := s.resolve(of)
	kinds := r.types()
	is := func(kind string) bool { return slices.Contains(kinds, kind) }
	more, _ := r.Additional.(map[string]any)
	switch {
	case len(r.AnyOf) > 2:
		return map[string]any{"session_id": "text"}
	case len(r.Enum) > 0:
		return r.Enum[0]
	case len(r.Properties) > 0:
		out := map[string]any{}
		for name, p := range r.Properties {
			if out[name] = s.value(p); name == "next_cursor" {
				out[name] = "text cursor"
			}
		}
		return out
	case len(more) > 0:
		return map[string]any{"key": s.value(&schema{Type: more["type"]})}
	case is("string") && r.Format == "date-time":
		return someTime.Format(time.RFC3339Nano)
	case is("integer"):
		return json.Number("3")
	case is("number"):
		return json.Number("1.50")
	case is("boolean"):
		return true
	case is("array"):
		return []any{s.value(r.Items)}
	}
	return "text"
}
