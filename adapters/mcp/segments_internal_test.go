package mcp

import (
	"encoding/json"
	"strings"
	"testing"
)

// An id that is none, with a slash above all, never becomes a path: it would lead to another operation.
func TestIDsAreCheckedBeforeTheyArePaths(t *testing.T) {
	t.Parallel()
	n := 0
	for _, tool := range tools {
		for _, f := range tool.args {
			if f.name != "session_id" && f.name != "worker" {
				continue
			}
			n++
			for text, want := range map[string]bool{"sess_0a1B": true, "w-7": true, "s/workers": false, "..": false, "s%2Fworkers": false,
				"s?x=1": false, "s#x": false, "s\\workers": false, "s workers": false, strings.Repeat("a", 65): false, "ä": false} {
				raw, _ := json.Marshal(text)
				if err := f.check(raw, ""); (err == nil) != want {
					t.Errorf("%s of %s: %q: %v", f.name, tool.name, text, err)
				}
			}
		}
	}
	if n < 8 {
		t.Errorf("%d arguments were tried", n)
	}
}
