package binding_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/binding"
)

// request is a Source without a server.
type request map[string]string

func (r request) Param(name string) string     { return r["path "+name] }
func (r request) Query(name string) string     { return r["query "+name] }
func (r request) GetHeader(name string) string { return r["header "+name] }

type paged struct {
	Page int `query:"page" minimum:"1" default:"1"`
}

type body struct {
	Name  string            `json:"name" minLength:"2" maxLength:"4"`
	Kind  string            `json:"kind,omitempty" enum:"a,b"`
	Code  string            `json:"code,omitempty" pattern:"^[a-z]+$" patternDescription:"small letters"`
	Plain string            `json:"plain,omitempty" pattern:"^x$"`
	At    string            `json:"at,omitempty" nullable:"true" format:"date-time"`
	Days  float64           `json:"days,omitempty" minimum:"1" maximum:"9" multipleOf:"1"`
	Part  float64           `json:"part,omitempty" exclusiveMinimum:"0" multipleOf:"0.5"`
	Count int               `json:"count"`
	Flag  bool              `json:"flag,omitempty"`
	List  []item            `json:"list,omitempty" minItems:"1" maxItems:"2"`
	Tags  map[string]string `json:"tags,omitempty"`
	One   oneOf             `json:"one,omitempty"`
	Odd   odd               `json:"odd,omitempty"`
}

type item struct {
	ID string `json:"id"`
}

// oneOf is a text or null.
type oneOf string

// Schema describes the type.
func (oneOf) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeBoolean}}}
}

// odd is a text that is not read as one.
type odd string

// UnmarshalJSON refuses every value.
func (*odd) UnmarshalJSON([]byte) error { return fmt.Errorf("never") }

type input struct {
	paged
	ID   string `path:"id" maxLength:"3"`
	Key  string `header:"Key" pattern:"^k"`
	Body body
}

func inputOf() *binding.Input {
	r := huma.NewMapRegistry("#/", huma.DefaultSchemaNamer)
	return binding.Of(reflect.TypeFor[input](), r, "test")
}

// Each keyword has its words, a null that is optional is absent, and no value is repeated.
func TestIssues(t *testing.T) {
	t.Parallel()
	in := inputOf()
	for _, c := range []struct{ send, body, want string }{
		{"", `{"name":"abc","count":1,"at":null,"kind":null,"list":[{"id":"x"}],"tags":{"k":"v"},"one":null}`, ""},
		{"", `{}`, "name is required; count is required"},
		{"", `{"name":null,"count":1}`, "name must be a string"},
		{"", `{"name":"a","count":1.5}`, "count must be an integer; name must have at least 2 characters"},
		{"", `{"name":"ééééé","count":"1"}`, "count must be an integer; name must have at most 4 characters"},
		{"", `{"name":"ab","count":1,"kind":"c"}`, "kind must be one of a, b"},
		{"", `{"name":"ab","count":1,"code":"A","plain":"y"}`, "code must be small letters; plain must match ^x$"},
		{"", `{"name":"ab","count":1,"at":"noon"}`, "at must be a time in RFC 3339"},
		{"", `{"name":"ab","count":1,"days":0}`, "days must be a number of at least 1"},
		{"", `{"name":"ab","count":1,"days":10}`, "days must be a number of at most 9"},
		{"", `{"name":"ab","count":1,"days":1.5,"part":0.7}`, "days must be a whole number; part must be a multiple of 0.5"},
		{"", `{"name":"ab","count":1,"part":0}`, "part must be a number above 0"},
		{"", `{"name":"ab","count":1,"flag":1}`, "flag must be true or false"},
		{"", `{"name":"ab","count":1,"list":{}}`, "list must be an array"},
		{"", `{"name":"ab","count":1,"list":[]}`, "list must have at least 1 items"},
		{"", `{"name":"ab","count":1,"list":[{},1,{"id":2}]}`, "list must have at most 2 items; list[0].id is required; " +
			"list[1] must be an object; list[2].id must be a string"},
		{"", `{"name":"ab","count":1,"tags":[]}`, "tags must be an object"},
		{"", `{"name":"ab","count":1,"tags":{"k":1,"Not a name":2}}`, "tags.? must be a string; tags.k must be a string"},
		{"", `{"name":"ab","count":1,"one":1}`, "one is not valid"},
		{"", `{"name":"ab","count":1,"odd":"x"}`, "body does not have the expected types"},
		{"query page=0", `{"name":"ab","count":1}`, "page must be an integer of at least 1"},
		{"query page=x", `{"count":1}`, "page must be an integer; name is required"},
		{"path id=long", `{"name":"ab","count":1}`, "id must have at most 3 characters"},
		{"header Key=x", `{"name":"ab","count":1}`, "Key must match ^k"},
	} {
		r := request{}
		if name, value, ok := strings.Cut(c.send, "="); ok {
			r[name] = value
		}
		var got []string
		for _, issue := range in.Read(r, []byte(c.body), reflect.New(reflect.TypeFor[input]()).Elem()) {
			got = append(got, issue.Field+" "+issue.Issue)
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s %s: %q, want %q", c.send, c.body, text, c.want)
		}
	}
}

// What is valid is in the struct, and an absent parameter has its default.
func TestReading(t *testing.T) {
	t.Parallel()
	var got input
	issues := inputOf().Read(request{"path id": "a", "header Key": "key"}, []byte(`{"name":"abc","count":7}`),
		reflect.ValueOf(&got).Elem())
	if issues != nil || got.ID != "a" || got.Key != "key" || got.Page != 1 || got.Body.Name != "abc" || got.Body.Count != 7 {
		t.Errorf("%+v, %v", got, issues)
	}
}

// Of many issues one answer lists MaxIssues.
func TestManyIssues(t *testing.T) {
	t.Parallel()
	list := strings.Repeat(`{},`, 2*binding.MaxIssues)
	var got input
	issues := inputOf().Read(request{}, []byte(`{"name":"ab","count":1,"list":[`+list+`{}]}`), reflect.ValueOf(&got).Elem())
	if len(issues) != binding.MaxIssues {
		t.Errorf("%d issues", len(issues))
	}
}
