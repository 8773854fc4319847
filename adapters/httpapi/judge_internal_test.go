package httpapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzJudge holds judge against encoding/json: what passes is an object that
// encoding/json takes, of valid UTF-8, whose keys no two bind alike; and the
// telemetry decoder gets through it.
func FuzzJudge(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a":[1,{"b":null}],"c":"\u00e9\ud83d\ude00\n"}`, `{"A":1,"b":{"C":2}}`, `{"a":1,"a":2}`, `{"a":1,"A":2}`, `[1]`, `{"a":1}x`,
		`{"a":"\ud800"}`, `{"a":"\u0000"}`, "{\"a\":\"\xff\"}", `{"a":1e400}`, `{"a":-0.0e+5}`, `{"events":[{"session_id":"x","event_type":"success","status_code":1}]}`,
		`{"events":[[],{},1,"x",{"event_type":"\u0062"}]}`, `{"\u0061":1,"a":2}`, `{"k":1,"` + "\u212a" + `":2}`, `{ "a" : true , "b" : [ ] }`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		body := bytes.Clone(sent)
		err := judge(body)
		var v map[string]any
		if err != nil {
			return
		}
		if len(body) != len(sent) || !utf8.Valid(body) {
			t.Fatalf("%q became %q", sent, body)
		}
		if err := json.Unmarshal(sent, &v); err != nil {
			t.Fatalf("%q passes, but %v", sent, err)
		}
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatalf("%q is broken: %v", body, err)
		}
		if keys := topKeys(t, sent); len(keys) > 0 {
			seen := map[string]bool{}
			for _, k := range keys {
				if seen[string(folded([]byte(k)))] {
					t.Fatalf("%q has %q twice", sent, k)
				}
				seen[string(folded([]byte(k)))] = true
			}
		}
		_, _ = decodeBatch(body)
		if got := canonical(body); !json.Valid(got) {
			t.Fatalf("%q is not canonical JSON", got)
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

func TestFoldedAgreesWithEncodingJSON(t *testing.T) {
	for _, key := range []string{"name", "NAME", "Name", "k", "\u212a", "s", "\u017f", "é", "É", "İ", "ß", "ẞ", "ǅ", "Ω", "\u2126", "😀", "a_1"} {
		for _, other := range []string{"name", "NAME", "k", "K", "\u212a", "s", "S", "\u017f", "É", "İ", "i", "ss", "ẞ", "Ǆ", "ω", "\u2126", "A_1"} {
			same := string(folded([]byte(key))) == string(folded([]byte(other)))
			if same != strings.EqualFold(key, other) {
				t.Errorf("%q and %q: %v", key, other, same)
			}
		}
	}
}
