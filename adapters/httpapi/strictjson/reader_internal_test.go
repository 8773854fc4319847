package strictjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzCheck compares Check with encoding/json: what passes is valid UTF-8, a value
// that encoding/json accepts, and has no two keys that bind to one field.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a":[1,{"b":null}],"c":"\u00e9\ud83d\ude00\n"}`, `{"A":1,"b":{"C":2}}`, `{"a":1,"a":2}`, `{"a":1,"A":2}`, `[1]`, `{"a":1}x`,
		`{"a":"\ud800"}`, `{"a":"\u0000"}`, "{\"a\":\"\xff\"}", `{"a":1e400}`, `{"a":-0.0e+5}`, `{"events":[{"session_id":"x","event_type":"success","status_code":1}]}`,
		`{"events":[[],{},1,"x",{"event_type":"\u0062"}]}`, `{"\u0061":1,"a":2}`, `{"k":1,"` + "\u212a" + `":2}`, `{ "a" : true , "b" : [ ] }`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		body := bytes.Clone(sent)
		if err := Check(body, nil); err != nil {
			return
		}
		var v any
		if len(body) != len(sent) || !utf8.Valid(body) {
			t.Fatalf("%q became %q", sent, body)
		}
		if err := json.Unmarshal(sent, &v); err != nil {
			t.Fatalf("%q passes, but %v", sent, err)
		}
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatalf("%q is broken: %v", body, err)
		}
		if _, object := v.(map[string]any); !object {
			return
		}
		seen := map[string]bool{}
		for _, k := range topKeys(t, sent) {
			if seen[string(folded([]byte(k)))] {
				t.Fatalf("%q has %q twice", sent, k)
			}
			seen[string(folded([]byte(k)))] = true
		}
	})
}

// topKeys lists the keys of an object as encoding/json reads them.
func topKeys(t *testing.T, body []byte) (keys []string) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key.(string))
		var skipped json.RawMessage
		if err := dec.Decode(&skipped); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

func BenchmarkCheck(b *testing.B) {
	event := `{"session_id":"sess_aaaabbbbccccddddeeee","event_type":"http_error","status_code":403,"latency_ms":70,"target_host":"shop.example"}`
	body := []byte(`{"events":[` + strings.Repeat(event+",", 99) + event + `]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := Check(body, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkKeys has a key cost the same among ten times as many.
func BenchmarkKeys(b *testing.B) {
	for _, keys := range []int{4_000, 40_000} {
		b.Run(strconv.Itoa(keys), func(b *testing.B) {
			var body strings.Builder
			body.WriteString(`{"name":"ab"`)
			for i := range keys {
				body.WriteString(`,"k` + strconv.Itoa(i) + `":1`)
			}
			body.WriteString("}")
			for b.Loop() {
				if err := Check([]byte(body.String()), nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*keys), "ns/key")
		})
	}
}

// TestErrorsNameTheValue proves the paths of nested values, and that no error
// repeats a value or a key that is no name.
func TestErrorsNameTheValue(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Error{
		`{"a":[{"b":1},{"b":tru}]}`:          {Field: "a[1].b", Issue: "unexpected character"},
		`{"a":{"b":"\ud800"}}`:               {Field: "a.b", Issue: "lone surrogate"},
		`{"a":{"b":1,"B":2}}`:                {Field: "a.b", Issue: duplicate, Key: true},
		`{"a":{"b":1,"b":2}}`:                {Field: "a.b", Issue: duplicate, Key: true},
		`{"S e":nul}`:                        {Field: "?", Issue: "unexpected character"},
		`{"a":1} x`:                          {Issue: "data follows the JSON value"},
		`{"a":1`:                             {Issue: "expected , or }"},
		``:                                   {Issue: "it ends too early"},
		strings.Repeat("[", 40):              {Field: strings.Repeat("[0]", 32), Issue: "it nests too deep"},
		`{"a":"` + "\xff" + `"}`:             {Field: "a", Issue: "invalid UTF-8"},
		`{"a":1e400}`:                        {Field: "a", Issue: "a number is out of range"},
		`{"a":"\u0000"}`:                     {Field: "a", Issue: "NUL character in a string"},
		`{"x":1,"` + "\u212a" + `":2,"k":3}`: {Field: "k", Issue: duplicate, Key: true},
	} {
		e, ok := Check([]byte(body), nil).(*Error)
		if !ok || e.Field != want.Field || e.Issue != want.Issue || e.Key != want.Key {
			t.Errorf("%q: %+v, want %+v", body, e, want)
		}
	}
}

func TestReaderBindsWhileItChecks(t *testing.T) {
	t.Parallel()
	r := NewReader([]byte(` { "n" : -1.50 , "s":"a\u00e9\n" , "list":[1,[2],{"x":3}], "Other":0 } `), nil)
	var got []string
	for key := range r.Fields() {
		switch string(key) {
		case "n":
			got = append(got, string(r.Number()))
		case "s":
			got = append(got, string(r.Text()))
		case "list":
			for i := range r.Elements() {
				got = append(got, string(rune('0'+i)))
				r.Skip()
			}
		default:
			got = append(got, string(key))
			r.Skip()
		}
	}
	if err := r.End(); err != nil || strings.Join(got, "|") != "-1.50|aé\n|0|1|2|" {
		t.Errorf("%q, %v", got, err)
	}
	r = NewReader([]byte(`{"n":"x"}`), nil)
	for range r.Fields() {
		if n := r.Number(); n != nil {
			t.Errorf("a string is the number %q", n)
		}
	}
	if e, ok := r.End().(*Error); !ok || e.Field != "n" || r.Next() != 0 {
		t.Errorf("%v", r.Err())
	}
}

func TestFoldedAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"name", "NAME", "Name", "k", "\u212a", "s", "\u017f", "é", "É", "İ", "ß", "ẞ", "ǅ", "Ω", "\u2126", "😀", "a_1"} {
		for _, other := range []string{"name", "NAME", "k", "K", "\u212a", "s", "S", "\u017f", "É", "İ", "i", "ss", "ẞ", "Ǆ", "ω", "\u2126", "A_1"} {
			same := string(folded([]byte(key))) == string(folded([]byte(other)))
			if same != strings.EqualFold(key, other) {
				t.Errorf("%q and %q: %v", key, other, same)
			}
		}
	}
}
