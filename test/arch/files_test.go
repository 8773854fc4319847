package arch_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layered are the packages whose files refer to each other in one direction: each can be read with those below it.
var layered = []string{"adapters/httpapi/endpoint"}

// elsewhere imports every package without what it declares: what a package declares itself is known nevertheless.
type elsewhere struct{}

func (elsewhere) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

// references returns which declaration of another file each file of a package names, by the file and the other one.
func references(fset *token.FileSet, files []*ast.File) map[string]map[string]string {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: elsewhere{}, Error: func(error) {}}
	p, _ := config.Check("p", fset, files, info) // faults are of what is declared elsewhere
	file := func(at token.Pos) string { return filepath.Base(fset.Position(at).Filename) }
	found := map[string]map[string]string{}
	for ident, object := range info.Uses {
		if object.Pkg() != p || !object.Pos().IsValid() {
			continue
		}
		from, to := file(ident.Pos()), file(object.Pos())
		if _, isPackage := object.(*types.PkgName); isPackage || from == to {
			continue
		}
		if found[from] == nil {
			found[from] = map[string]string{}
		}
		found[from][to] = max(found[from][to], object.Name())
	}
	return found
}

// circles returns the references among files that refer to each other, directly or by others.
func circles(refs map[string]map[string]string) (found []string) {
	reaches := func(from, to string) bool {
		seen, todo := map[string]bool{}, []string{from}
		for len(todo) > 0 {
			at := todo[0]
			todo = todo[1:]
			if at == to {
				return true
			}
			if !seen[at] {
				seen[at] = true
				todo = slices.AppendSeq(todo, maps.Keys(refs[at]))
			}
		}
		return false
	}
	for from, others := range refs {
		for to, name := range others {
			if reaches(to, from) {
				found = append(found, fmt.Sprintf("%s names %s of %s", from, name, to))
			}
		}
	}
	slices.Sort(found)
	return found
}

func TestFilesOfLayeredPackagesFormNoCircle(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for _, path := range layered {
		fset, files := parsed(t, path, all[path])
		refs := references(fset, files)
		if len(refs) < len(files)/2 {
			t.Errorf("%s: %d of %d files name another", path, len(refs), len(files))
		}
		if found := circles(refs); found != nil {
			t.Errorf("%s: files refer to each other in a circle:\n%s", path, strings.Join(found, "\n"))
		}
	}
}

func TestACircleOfFilesIsFound(t *testing.T) {
	t.Parallel()
	refs := map[string]map[string]string{"a": {"b": "X"}, "b": {"c": "Y", "d": "Z"}, "c": {"a": "W"}, "d": {}}
	want := []string{"a names X of b", "b names Y of c", "c names W of a"}
	if got := circles(refs); !slices.Equal(got, want) {
		t.Errorf("found %q", got)
	}
}

// upward returns the references that run against the best order of files which is found, the callers first: as few as
// moving one file at a time makes it.
func upward(refs map[string]map[string]string) (found []string) {
	var order []string
	for from, to := range refs {
		order = append(order, from)
		order = slices.AppendSeq(order, maps.Keys(to))
	}
	slices.Sort(order)
	order = slices.Compact(order)
	against := func(order []string) (up []string) {
		for i, file := range order {
			for _, earlier := range order[:i] {
				if name := refs[file][earlier]; name != "" {
					up = append(up, fmt.Sprintf("%s names %s of %s", file, name, earlier))
				}
			}
		}
		return up
	}
	found = against(order)
	for better := true; better; {
		better = false
		for i := range order {
			for to := range order {
				moved := slices.Insert(slices.Delete(slices.Clone(order), i, i+1), to, order[i])
				if up := against(moved); len(up) < len(found) {
					order, found, better = moved, up, true
				}
			}
		}
	}
	return found
}
