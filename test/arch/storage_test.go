package arch_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What storage may have at most.
const (
	storageRootFiles = 13
	storageFiles     = 16 // of any other folder of storage
	upwardShare      = 20 // as many references, of which one may run up: from a file to one that uses it
)

const storageRoot = "adapters/storage"

var (
	batchBranch   = regexp.MustCompile(`\b[bB]atch [!=]= nil`)
	otherRoom     = regexp.MustCompile(`(?m)^\t(?:\w+ )?"agentproxy/adapters/storage/[a-z/]+"$`)
	dialectBranch = regexp.MustCompile(`\bpostgres [!=]= nil`)
)

// TestStorageHasOneWay holds how many files a folder of storage has, that no method asks whether its unit shares a
// transaction or on which database it is, and that files refer to each other in one direction, nearly.
func TestStorageHasOneWay(t *testing.T) {
	files, all := map[string]int{}, 0
	for _, s := range sources(t) {
		dir := filepath.ToSlash(filepath.Dir(s.path))
		if s.test() || dir != storageRoot && !strings.HasPrefix(dir, storageRoot+"/") {
			continue
		}
		files[dir]++
		all += len(otherRoom.FindAll(s.text, -1)) // which run down, as packages do not import each other
		if batchBranch.Match(s.text) {
			t.Errorf("%s asks for a batch: write the method once, on the rows of the unit", s.path)
		}
		if dialectBranch.Match(s.text) && !slices.Contains([]string{"engine", "sqlite", "postgres"}, filepath.Base(dir)) {
			t.Errorf("%s asks which database it is: give both a method, or choose a function when the store is opened", s.path)
		}
	}
	back := 0
	for dir, n := range files {
		most := storageFiles
		if dir == storageRoot {
			most = storageRootFiles
		}
		if n > most {
			t.Errorf("%s has %d files, at most %d are allowed", dir, n, most)
		}
		refs := references(parsed(t, dir, packages(t)[dir]))
		for _, to := range refs {
			all += len(to)
		}
		in := upward(refs)
		back += len(in)
		if len(in) > 0 {
			t.Logf("%s: %d references up: %s", dir, len(in), strings.Join(in, ", "))
		}
	}
	t.Logf("%d of %d references to other files and packages run up", back, all)
	if back*upwardShare > all {
		t.Errorf("%d of %d references to other files and packages run up, at most one in %d is allowed", back, all, upwardShare)
	}
}
