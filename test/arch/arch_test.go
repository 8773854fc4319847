// Package arch_test holds the shape of the code: imports point inward, and
// every package says what it is.
package arch_test

import (
	"go/build"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

const (
	module = "agentproxy"
	root   = "../.."
)

// packages parses every package of the module, by its path below the root.
func packages(t *testing.T) map[string]*build.Package {
	t.Helper()
	found := map[string]*build.Package{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); name != ".." && strings.HasPrefix(name, ".") || name == "testdata" {
			return filepath.SkipDir
		}
		p, err := build.ImportDir(path, 0)
		if _, none := err.(*build.NoGoError); none {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		found[filepath.ToSlash(rel)] = p
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 20 {
		t.Fatalf("found only %d packages below %s", len(found), root)
	}
	return found
}

// mayImport says which of our packages a package may import; those of others
// (the second result) only outside domain and ports.
func mayImport(from, to string) bool {
	layer, _, _ := strings.Cut(from, "/")
	target, rest, _ := strings.Cut(to, "/")
	switch {
	case layer == "domain":
		return target == "domain"
	case layer == "ports":
		return target == "domain" || target == "ports"
	case layer == "cmd", from == "adapters/configfile":
		return true
	case layer == "app":
		return target == "domain" || target == "ports" || to == "app"
	case layer == "adapters":
		if target == "adapters" { // only within its own folder
			own, _, _ := strings.Cut(strings.TrimPrefix(from, "adapters/"), "/")
			its, _, _ := strings.Cut(rest, "/")
			return own == its
		}
		return target == "domain" || target == "ports" || to == "app"
	}
	return true // test
}

func TestImportsPointInward(t *testing.T) {
	for path, p := range packages(t) {
		for _, imported := range p.Imports {
			to, ours := strings.CutPrefix(imported, module+"/")
			if ours && !mayImport(path, to) {
				t.Errorf("%s imports %s", path, to)
			}
			pure := strings.HasPrefix(path, "domain") || path == "ports"
			if pure && !ours && strings.Contains(strings.Split(imported, "/")[0], ".") {
				t.Errorf("%s imports %s: only the standard library is allowed there", path, imported)
			}
		}
	}
}

func TestDomainDoesNoIO(t *testing.T) {
	for path, p := range packages(t) {
		if !strings.HasPrefix(path, "domain") {
			continue
		}
		for _, imported := range p.Imports {
			switch imported {
			case "os", "net", "net/http", "io/fs", "database/sql", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand":
				t.Errorf("%s imports %s: the domain does no IO and makes no chance", path, imported)
			}
		}
	}
}

func TestEveryPackageHasADocComment(t *testing.T) {
	for path, p := range packages(t) {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", path)
		}
	}
}
