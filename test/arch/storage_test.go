package arch_test

import (
	"go/ast"
	"go/token"
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
	dialectBranches  = 15 // outside engine, sqlite and postgres
	circularFiles    = 89 // references between the files of the root that lead back to where they come from
)

var (
	batchBranch   = regexp.MustCompile(`\b[bB]atch [!=]= nil`)
	dialectBranch = regexp.MustCompile(`\bpostgres [!=]= nil`)
)

// TestStorageHasOneWay holds what is left of second forms in storage.
func TestStorageHasOneWay(t *testing.T) {
	files, batches, dialects := map[string]int{}, 0, 0
	var inRoot []source
	for _, s := range sources(t) {
		dir := filepath.ToSlash(filepath.Dir(s.path))
		if s.test() || dir != "adapters/storage" && !strings.HasPrefix(dir, "adapters/storage/") {
			continue
		}
		files[dir]++
		if dir == "adapters/storage" {
			inRoot = append(inRoot, s)
		}
		batches += len(batchBranch.FindAll(s.text, -1))
		if !slices.Contains([]string{"engine", "sqlite", "postgres"}, filepath.Base(dir)) {
			dialects += len(dialectBranch.FindAll(s.text, -1))
		}
	}
	for dir, n := range files {
		most := storageFiles
		if dir == "adapters/storage" {
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
		{"references in circles of files", referencesInCircles(inRoot), circularFiles},
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

// referencesInCircles counts the pairs of files of a package of which the first names a definition of the
// second, and the second leads back to the first.
func referencesInCircles(files []source) (n int) {
	defined := map[string]string{}
	for _, s := range files {
		for _, d := range s.file.Decls {
			for _, name := range topLevel(d) {
				if name != "_" {
					defined[name] = s.path
				}
			}
		}
	}
	names := map[string]map[string]bool{}
	for _, s := range files {
		names[s.path] = map[string]bool{}
		members := map[*ast.Ident]bool{} // selected of another value, or fields
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				members[n.Name] = n.Recv != nil
			case *ast.SelectorExpr:
				members[n.Sel] = true
			case *ast.Ident:
				if to := defined[n.Name]; to != "" && to != s.path && !members[n] {
					names[s.path][to] = true
				}
			}
			return true
		})
	}
	for from, all := range names {
		for to := range all {
			if leads(names, to, from, map[string]bool{}) {
				n++
			}
		}
	}
	return n
}

// leads reports whether references lead from a file to another.
func leads(names map[string]map[string]bool, from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for next := range names[from] {
		if leads(names, next, to, seen) {
			return true
		}
	}
	return false
}

// topLevel returns the names that a declaration gives to the package, without methods.
func topLevel(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil
		}
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}
