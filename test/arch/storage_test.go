package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What is left in storage of forms that are on their way out. A step that removes some lowers the bound,
// and nothing raises it.
const (
	storageRootFiles = 51 // the goal is 13
	storageFiles     = 16 // of any other folder of storage
	batchBranches    = 15 // writes and reads with a second form for units that share a transaction
	dialectBranches  = 14 // outside engine, sqlite and postgres
	circularFiles    = 54 // references between the files of the root that lead back to where they come from
)

const storageRoot = "adapters/storage"

var (
	batchBranch   = regexp.MustCompile(`\b[bB]atch [!=]= nil`)
	dialectBranch = regexp.MustCompile(`\bpostgres [!=]= nil`)
)

// TestStorageHasOneWay holds what is left of second forms in storage.
func TestStorageHasOneWay(t *testing.T) {
	files, batches, dialects := map[string]int{}, 0, 0
	for _, s := range sources(t) {
		dir := filepath.ToSlash(filepath.Dir(s.path))
		if s.test() || dir != storageRoot && !strings.HasPrefix(dir, storageRoot+"/") {
			continue
		}
		files[dir]++
		batches += len(batchBranch.FindAll(s.text, -1))
		if !slices.Contains([]string{"engine", "sqlite", "postgres"}, filepath.Base(dir)) {
			dialects += len(dialectBranch.FindAll(s.text, -1))
		}
	}
	for dir, n := range files {
		most := storageFiles
		if dir == storageRoot {
			most = storageRootFiles
		}
		if n > most {
			t.Errorf("%s has %d files, at most %d are allowed", dir, n, most)
		}
	}
	for _, of := range []struct {
		what    string
		n, most int
	}{
		{"branches by batch", batches, batchBranches},
		{"branches by database", dialects, dialectBranches},
		{"references in circles of files", len(circles(references(parsed(t, storageRoot, packages(t)[storageRoot])))), circularFiles},
	} {
		t.Logf("%s: %d", of.what, of.n)
		if of.n > of.most {
			t.Errorf("storage has %d %s, at most %d are allowed", of.n, of.what, of.most)
		}
		if of.n < of.most && os.Getenv("CI") != "" {
			t.Errorf("storage has %d %s: lower the bound of %d", of.n, of.what, of.most)
		}
	}
}
