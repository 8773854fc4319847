package storage_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"agentproxy/adapters/storage"
)

// A URL with a password is hidden wherever it is printed, and an empty one is shown as empty.
func TestADatabasesURLIsHidden(t *testing.T) {
	for url, want := range map[storage.URL]string{"postgres://user:secret@db.example/agentproxy": "[hidden]", "": ""} {
		var logged bytes.Buffer
		slog.New(slog.NewTextHandler(&logged, nil)).Info("opened", "url", url)
		if _, value, _ := strings.Cut(strings.TrimSpace(logged.String()), "url="); strings.Trim(value, `"`) != want {
			t.Errorf("logged: %s", logged.String())
		}
		for _, verb := range []string{"%s", "%v", "%+v", "%#v"} {
			if got := fmt.Sprintf(verb, url); got != want {
				t.Errorf("with %s it is %q, want %q", verb, got, want)
			}
		}
	}
}
