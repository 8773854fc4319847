package webhooks

import (
	"encoding/json"
	"maps"
	"testing"
)

func FuzzDataIsEncodedAsByTheLibrary(f *testing.F) {
	for _, text := range []string{"", "sess_1", `"`, `\\`, "<&>", "\n", "\x00", "\x7f", "é", "\u2028", "\xff", "0.400000"} {
		f.Add(text, "status")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, data := range []map[string]string{nil, {}, {a: b}, {b: a, "session_id": a, "status": b}} {
			want, err := json.Marshal(maps.Clone(data))
			if got := encode(data); err != nil || got != string(want) {
				t.Errorf("%q is %s, want %s: %v", data, got, want, err)
			}
		}
	})
}
