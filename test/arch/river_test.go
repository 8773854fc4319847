package arch_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// riverTable names a table of River in a text. Its tables may change with each of its versions, which compiles.
var riverTable = regexp.MustCompile(`\briver_(?:job|leader|queue|client|client_queue|migration|notification)\b`)

// riverTables are the tests that write or count rows of River's tables, for states that its API does not make: a
// process that died, a job of an older version, arguments that cannot be read, and an empty table after a migration.
var riverTables = []string{"adapters/queue/queue_test.go", "adapters/queue/rescue_test.go", "adapters/storage/postgres_test.go",
	"adapters/storage/sqlite_test.go", "test/e2e/crash_test.go", "test/e2e/jobs_test.go"}

func TestRiverIsUsedByItsAPI(t *testing.T) {
	var found []string
	for _, s := range sources(t) {
		for text, at := range texts(t, filepath.Join(root, s.path)) {
			if !riverTable.MatchString(text) {
				continue
			}
			if found = append(found, s.path); !slices.Contains(riverTables, s.path) {
				t.Errorf("%s: a statement on a table of River: use its API", at)
			}
		}
	}
	// The driver is an argument of River's client: its methods change with any release.
	for _, s := range sources(t) {
		if strings.Contains(string(s.text), ".GetExecutor"+"(") {
			t.Errorf("%s calls the driver of River: use its client", s.path)
		}
	}
	for _, name := range riverTables {
		if !slices.Contains(found, name) {
			t.Errorf("%s has no statement on a table of River: remove it from riverTables", name)
		}
	}
}
