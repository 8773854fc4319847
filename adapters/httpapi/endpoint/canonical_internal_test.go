package endpoint

import (
	"encoding/json"
	"testing"
)

// FuzzCanonical proves that every body that calls accept has a canonical form.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{}`, ` `, `{"a":1.0,"b":[1e2,"\u0062"]}`, `{"b":null,"a":{"d":[],"c":{}}}`,
		`{"a":[],"a":[]}`, `{"a":tru}`, `{"a":"\ud83d\ude00"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if CheckBody(body, nil) != nil {
			return
		}
		if got := canonical(body); !json.Valid(got) {
			t.Fatalf("%q is not canonical JSON", got)
		}
	})
}
